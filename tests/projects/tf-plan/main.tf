resource "aws_sfn_state_machine" "loan" {
  name     = "loan"
  type     = "EXPRESS"
  role_arn = "arn:aws:iam::123456789012:role/loan"
  definition = jsonencode({
    QueryLanguage = "JSONata"
    StartAt       = "Read"
    States = {
      Read = {
        Type   = "Pass"
        Assign = { income = "{% $states.input.income %}", debts = "{% $sum($states.input.debts.amount) %}" }
        Next   = "Rate"
      }
      Rate = {
        Type    = "Choice"
        Choices = [{ Condition = "{% $debts > $income * 0.4 %}", Assign = { rating = "C" }, Next = "Decide" }]
        Default = "Decide"
        Assign  = { rating = "A" }
      }
      Decide = {
        Type   = "Pass"
        Output = { rating = "{% $rating %}", rest = "{% $income - $debts %}", id = "{% $states.context.StateMachine.Name %}" }
        End    = true
      }
    }
  })
}

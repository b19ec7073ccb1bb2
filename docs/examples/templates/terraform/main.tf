resource "aws_lambda_function" "charge" {
  function_name = "${var.prefix}-charge"
  handler       = "charge.handler"
  runtime       = "python3.12"
  role          = aws_iam_role.charge.arn
}

resource "aws_sfn_state_machine" "order" {
  name     = "${var.prefix}-order"
  role_arn = aws_iam_role.order.arn

  definition = templatefile("${path.module}/order.asl.json", {
    charge_arn = aws_lambda_function.charge.arn
    patience   = var.patience
  })
}

resource "aws_sfn_state_machine" "refund" {
  name     = "${var.prefix}-refund"
  role_arn = aws_iam_role.order.arn

  definition = jsonencode({
    StartAt = "Refund"
    States = {
      Refund = {
        Type     = "Task"
        Resource = aws_lambda_function.charge.arn
        Parameters = {
          "order.$" = "$.order"
          kind      = "refund"
        }
        TimeoutSeconds = local.minute * 5
        Catch          = [{ ErrorEquals = ["States.Timeout"], Next = "Tell" }]
        End            = true
      }
      Tell = {
        Type     = "Task"
        Resource = "arn:aws:states:::sns:publish"
        Parameters = {
          TopicArn = aws_sns_topic.people.arn
          Message  = "a refund in ${upper(var.stage)} takes too long"
        }
        End = true
      }
    }
  })
}

resource "aws_sfn_state_machine" "cleanup" {
  name     = "${var.prefix}-cleanup"
  role_arn = aws_iam_role.order.arn

  definition = <<-EOF
    {
      "StartAt": "Wait",
      "States": {
        "Wait": { "Type": "Wait", "Seconds": ${local.minute * 60}, "Next": "Clean" },
        "Clean": { "Type": "Task", "Resource": "${aws_lambda_function.charge.arn}", "End": true }
      }
    }
  EOF
}


resource "aws_sqs_queue" "people" {
  name = "onboarding"
}

resource "aws_sfn_activity" "badge" {
  name = "print-badge"
}

resource "aws_sfn_state_machine" "onboarding" {
  name     = "onboarding"
  role_arn = aws_iam_role.onboarding.arn
  definition = jsonencode(yamldecode(templatefile("${path.module}/onboarding.asl.yaml", {
    queue = aws_sqs_queue.people.url
    badge = aws_sfn_activity.badge.arn
  })))
}

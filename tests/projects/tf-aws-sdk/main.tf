variable "stages" {
  type    = set(string)
  default = ["blue", "green"]
}

resource "aws_ssm_parameter" "limit" {
  for_each = var.stages
  name     = "/rotate/${each.key}/limit"
  type     = "String"
  value    = "5"
}

resource "aws_secretsmanager_secret" "token" {
  name = "rotate-token"
}

resource "aws_sfn_state_machine" "rotate" {
  for_each = var.stages
  name     = "rotate-${each.key}"
  role_arn = "arn:aws:iam::123456789012:role/rotate"

  definition = <<-JSON
    {
      "StartAt": "Read limit",
      "States": {
        "Read limit": {
          "Type": "Task",
          "Resource": "arn:aws:states:::aws-sdk:ssm:getParameter",
          "Parameters": { "Name": "${aws_ssm_parameter.limit[each.key].name}" },
          "ResultSelector": { "limit.$": "States.StringToJson($.Parameter.Value)" },
          "Next": "New token"
        },
        "New token": {
          "Type": "Task",
          "Resource": "arn:aws:states:::aws-sdk:secretsmanager:putSecretValue",
          "Parameters": {
            "SecretId": "${aws_secretsmanager_secret.token.name}",
            "SecretString.$": "States.Format('${each.key}-{}', $.limit)"
          },
          "ResultPath": null,
          "Catch": [{
            "ErrorEquals": ["SecretsManager.ResourceNotFoundException"],
            "ResultPath": "$.error",
            "Next": "No secret"
          }],
          "Next": "Read"
        },
        "Read": {
          "Type": "Task",
          "Resource": "arn:aws:states:::aws-sdk:secretsmanager:getSecretValue",
          "Parameters": { "SecretId": "${aws_secretsmanager_secret.token.name}" },
          "ResultSelector": { "token.$": "$.SecretString" },
          "End": true
        },
        "No secret": { "Type": "Fail", "Error": "NoSecret" }
      }
    }
  JSON
}

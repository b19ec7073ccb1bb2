data "archive_file" "classify" {
  type        = "zip"
  source_dir  = "${path.module}/lambda"
  output_path = "${path.module}/build/classify.zip"
}

resource "aws_lambda_function" "classify" {
  function_name    = "${var.project}-classify"
  role             = aws_iam_role.classify.arn
  runtime          = "python3.12"
  handler          = "classify.handler"
  filename         = data.archive_file.classify.output_path
  source_code_hash = data.archive_file.classify.output_base64sha256
  timeout          = 20
  memory_size      = 256

  environment {
    variables = {
      LARGE = 10
      TABLE = aws_dynamodb_table.inventory.name
    }
  }
}

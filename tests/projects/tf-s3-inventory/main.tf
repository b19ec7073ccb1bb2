terraform {
  required_providers {
    aws = { source = "hashicorp/aws", version = "~> 5.0" }
  }
}

provider "aws" {
  region = var.region

  endpoints {
    sfn = "http://127.0.0.1:8083"
  }
}

locals {
  name = "${var.project}-inventory"
}

resource "aws_sfn_state_machine" "inventory" {
  name     = local.name
  role_arn = aws_iam_role.inventory.arn
  type     = "STANDARD"
  publish  = true

  definition = templatefile("${path.module}/inventory.asl.json.tftpl", {
    classify_arn = aws_lambda_function.classify.arn
    bucket       = aws_s3_bucket.files.bucket
    table        = aws_dynamodb_table.inventory.name
    page_size    = var.page_size
    stages       = ["raw", "clean"]
  })

  logging_configuration {
    log_destination        = "${aws_cloudwatch_log_group.inventory.arn}:*"
    include_execution_data = true
    level                  = "ERROR"
  }
}

resource "aws_sfn_alias" "live" {
  name = "live"

  routing_configuration {
    state_machine_version_arn = aws_sfn_state_machine.inventory.state_machine_version_arn
    weight                    = 100
  }
}

resource "aws_s3_bucket" "files" {
  bucket = "${var.project}-files"
}

resource "aws_dynamodb_table" "inventory" {
  name         = local.name
  billing_mode = "PAY_PER_REQUEST"
  hash_key     = "key"

  attribute {
    name = "key"
    type = "S"
  }
}

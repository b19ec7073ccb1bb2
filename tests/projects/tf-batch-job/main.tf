variable "environment" { default = "dev" }

data "aws_caller_identity" "me" {}
data "aws_region" "here" {}

resource "aws_sns_topic" "jobs" {
  name = "jobs-${var.environment}"
}

resource "aws_sfn_state_machine" "etl" {
  name     = "etl-${var.environment}"
  role_arn = "arn:aws:iam::${data.aws_caller_identity.me.account_id}:role/etl"

  definition = jsonencode({
    Comment = "A query, and a note about its end"
    StartAt = "Query"
    States = {
      Query = {
        Type     = "Task"
        Resource = "arn:aws:states:::athena:startQueryExecution.sync"
        Parameters = {
          QueryString           = "select 1"
          WorkGroup             = "primary"
          ResultConfiguration   = { OutputLocation = "s3://results/" }
          QueryExecutionContext = { Database = "shop" }
        }
        ResultSelector = { "state.$" = "$.QueryExecution.Status.State" }
        ResultPath     = "$.query"
        Next           = "Crawl"
      }
      Crawl = {
        Type           = "Task"
        Resource       = "arn:aws:states:::codebuild:startBuild.sync"
        Parameters     = { ProjectName = "crawl-${data.aws_region.here.name}" }
        ResultSelector = { "status.$" = "$.Build.BuildStatus" }
        ResultPath     = "$.build"
        TimeoutSeconds = 600
        Next           = "Tell"
      }
      Tell = {
        Type     = "Task"
        Resource = "arn:aws:states:::sns:publish"
        Parameters = {
          TopicArn    = aws_sns_topic.jobs.arn
          "Message.$" = "States.Format('query {}, build {}', $.query.state, $.build.status)"
        }
        ResultPath = null
        End        = true
      }
    }
  })
}

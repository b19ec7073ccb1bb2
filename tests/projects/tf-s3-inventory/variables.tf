variable "project" { type = string }

variable "region" {
  type    = string
  default = "us-east-1"
}

variable "page_size" {
  type    = number
  default = 2
}

variable "prefix" {
  default = "shop"
}

variable "stage" {
  type = string
}

variable "patience" {
  description = "How many seconds a customer has to cancel an order"
  type        = number
  default     = 3600
}

locals {
  minute = 60
}

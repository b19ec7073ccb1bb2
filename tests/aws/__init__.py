"""Tests of calls of AWS's services, against moto's server on loopback."""

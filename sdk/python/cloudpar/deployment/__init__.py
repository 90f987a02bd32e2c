"""A deployment on AWS as its operator sees it: checks, the stack, the fleet, prices, administration.

All requests to AWS go through `Aws`, which needs an operator's AWS credentials and botocore (the extra `aws`). Only
`Aws` imports botocore. A user of a deployment needs neither the credentials nor botocore, only an endpoint and a token.
"""

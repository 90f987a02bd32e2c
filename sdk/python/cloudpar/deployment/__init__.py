"""A deployment on AWS as its operator sees it: checks before it, the stack, the fleet, prices, administration.

Everything here needs an operator's AWS credentials and botocore (the extra `aws`), which is imported when it is first
used. A user of a deployment needs neither of them, only an endpoint and a token.
"""

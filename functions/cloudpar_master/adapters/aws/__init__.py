"""An AWS account: DynamoDB, SQS FIFO, S3, and the group of the fleet. The only code that knows AWS."""

"""The adapters for AWS: DynamoDB, SQS FIFO, S3, an Auto Scaling group. No other code of the master calls AWS."""

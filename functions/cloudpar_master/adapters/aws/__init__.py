"""The ports on AWS: DynamoDB, SQS FIFO, S3 and an Auto Scaling group. No other code of the master calls AWS."""

"""Protects the tables that outlive a stack from deletion.

The template does not protect these tables. If it did, and the first creation of the stack failed, CloudFormation could
not delete the protected tables, and so could not delete the stack.
"""

from . import stack, template
from .aws import Aws

TABLE = "AWS::DynamoDB::Table"


def protect(aws: Aws, name: str) -> None:
    """Protect the tables that outlive the stack of this name, and no other table of the stack.

    Raises:
        DeploymentError: AWS refuses a call or does not answer.
    """
    body, tables = stack.template(aws, name), stack.physical_ids(aws, name)
    retained = template.retained(body)
    for logical in template.named(body, TABLE):
        table = tables.get(logical)
        if not table:
            continue
        found = aws.call("dynamodb", "describe_table", TableName=table)["Table"]
        # A table that no longer outlives the stack must not stay protected: `cloudpar destroy` could not delete it.
        wanted = logical in retained
        if found.get("DeletionProtectionEnabled", False) != wanted:
            aws.call("dynamodb", "update_table", TableName=table, DeletionProtectionEnabled=wanted)

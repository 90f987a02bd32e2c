"""The Lambda function that serves the users' routes."""

from cloudpar_protocol import routes

from .endpoint import handler

handle = handler(
    routes.HELLO, routes.PREPARE_UPLOADS, routes.START_TASKS, routes.AWAIT_TASKS, routes.CANCEL_TASKS,
    routes.ACKNOWLEDGE, routes.LIST_PACKAGES,
)  # fmt: skip

"""The Lambda function that serves the workers' routes."""

from cloudpar_protocol import routes

from .endpoint import handler

handle = handler(
    routes.RETRIEVE_TASKS, routes.PREPARE_RESULTS, routes.PUBLISH_RESULTS, routes.EXTEND_LEASES, routes.GIVE_BACK
)

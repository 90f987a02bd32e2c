from typing import Final

from . import tools
from .plan import Plan
from .project import Project
from .settings import Request
from .update import Update

SETTING: Final = "imageBuild"

SAID: Final = (
    "{reason}, so AWS CodeBuild builds the worker's images during the deployment (setting imageBuild=codebuild, which "
    "stays until --unset imageBuild). It takes some minutes more, and costs about 0.05 USD."
)


def settle(update: Update, request: Request, plan: Plan, project: Project) -> tuple[Update, str | None]:
    """Let CodeBuild build the worker's images if Docker cannot do so here and the operator has not chosen a builder.

    Returns:
        The deployment, and a line for the operator if this function has added the setting.
    """
    if not plan.builds_image or SETTING in update.settings or SETTING in request.unset:
        return update, None
    failed = next((each for each in tools.docker(project, plan) if each.state == "failed"), None)
    if failed is None:
        return update, None
    said = SAID.format(reason=failed.found)
    if request.file is not None:
        said += f" Write {SETTING} into your file of settings, too: later deployments require it there."
    return update.with_setting(SETTING, "codebuild"), said

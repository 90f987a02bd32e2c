"""Plans and executes one deployment. An update unsets a setting or changes a table only at the operator's request."""

import secrets
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import msgspec

from . import causes, change_set, settings, stack
from .aws import Aws
from .cdk import Cdk
from .change_set import Doomed
from .failures import AwsRefused, CdkFailed, DeploymentError
from .settings import Change, Request, Settings


class Update(msgspec.Struct, frozen=True):
    """The plan of one deployment.

    Attributes:
        name: The stack's name.
        there: The current stack; None if there is none.
        template: The current template; None if there is no stack that can be updated.
        settings: The settings to deploy.
        changes: The differences between `settings` and the current settings, as far as the current settings are known.
    """

    name: str
    there: stack.Stack | None
    template: dict[str, Any] | None
    settings: Settings
    changes: list[Change]

    @classmethod
    def plan(cls, aws: Aws, environment: str, request: Request) -> Self:
        """Find out the current state and plan the deployment.

        Raises:
            DeploymentError: A setting would return to its default although `request.unset` does not name it. Or the
                stack keeps no settings, and the request has no file. Or a protected stack has to be deleted first. Or
                AWS refuses a request or does not answer.
        """
        name = stack.stack_name(environment)
        there = stack.find(aws, name)
        if there is not None and there.failed:
            there.refuse_protected(aws.region)  # the CDK deletes such a stack first
        said = stack.template(aws, name) if there is not None else {}
        body = said if there is not None and there.made else None
        # A stack whose creation failed cannot be updated, but the deployment still uses the settings that it keeps.
        before = said if body is not None or settings.kept(said) is not None else None
        wanted = settings.wanted(before, request, name)
        return cls(name, there, body, wanted, settings.changes(settings.known(before), wanted))

    @property
    def endpoint(self) -> str | None:
        """The address of the API before this deployment; None if there is none."""
        return self.there.outputs.get("Endpoint") if self.there is not None else None

    @property
    def kind(self) -> str:
        """The kind of deployment, in words."""
        if self.there is None:
            return "new"
        return f"{'new' if self.template is None else 'update'} ({self.there.state} now)"

    def with_setting(self, name: str, value: str) -> Self:
        """Return the same deployment with a further setting, one that has had its default until now."""
        changes = sorted([*self.changes, Change(name, None, value)], key=lambda each: each.name)
        return msgspec.structs.replace(self, settings={**self.settings, name: value}, changes=changes)

    def context(self, environment: str, request: Request) -> list[str]:
        """Return the CDK context values of this deployment. The app checks the names in `unset`."""
        unset = [f"unset={','.join(sorted(request.unset))}"] if request.unset else []
        return [f"env={environment}", *(f"{name}={value}" for name, value in self.settings.items()), *unset]

    def check(self, body: Mapping[str, Any]) -> None:
        """Compare the tables in use with those of the new template.

        Raises:
            DeploymentError: The template uses another table, although the table's setting does not change.
        """
        if self.template is not None:
            settings.check_tables(self.template, body, [each.name for each in self.changes], self.name)

    def execute(self, aws: Aws, cdk: Cdk, assembly: Path, show: Callable[[list[Doomed]], None]) -> None:
        """Create or update the stack; `show` gets the resources that an update removes, replaces or may replace.

        Raises:
            DeploymentError: The deployment failed. The text names the resource and AWS's reason, if AWS reports them.
                Or the update was refused, because it would take data from the stack.
        """
        last = None
        if self.template is not None:
            with suppress(AwsRefused):  # without this permission, errors lack a reason, but the deployment works
                last = stack.newest_event(aws, self.name)
        try:
            if self.template is None:
                cdk.deploy(self.name, assembly)
            else:
                self._change(aws, cdk, assembly, show)
        except CdkFailed as error:
            cause = causes.failed_resources(aws, self.name, last)
            if cause is None:
                raise
            state = "is as it was before" if self.template is not None else "was not made"
            raise DeploymentError(f"{error.command} failed, and {self.name} {state}: {cause}") from None

    def _change(self, aws: Aws, cdk: Cdk, assembly: Path, show: Callable[[list[Doomed]], None]) -> None:
        name = f"cloudpar-{secrets.token_hex(8)}"
        cdk.prepare(self.name, assembly, name)
        doomed = change_set.doomed(aws, self.name, name)
        if doomed is None:
            return
        try:
            change_set.check_data(doomed, self.name)
        except DeploymentError:
            change_set.discard(aws, self.name, name)
            raise
        if doomed:
            show(doomed)
        cdk.execute(self.name, assembly, name)

import click


class ListingGroup(click.Group):
    """A group of commands. If no command is named, it runs its command `list` with the given options."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Insert `list` if there is no argument, or if the first argument is an option other than --help."""
        if not args or (args[0].startswith("-") and args[0] not in ctx.help_option_names):
            args = ["list", *args]
        return super().parse_args(ctx, args)

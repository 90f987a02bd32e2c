import click


class ListingGroup(click.Group):
    """A group of commands that lists without a command's name: with the same options as its command `list`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Name `list` if the first argument is an option of it, or if there is none."""
        if not args or (args[0].startswith("-") and args[0] not in ctx.help_option_names):
            args = ["list", *args]
        return super().parse_args(ctx, args)

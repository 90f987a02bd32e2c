"""A small web crawler: all pages of a site, and the links that lead nowhere.

    pip install .
    python examples/crawl.py http://127.0.0.1:8000/ --tasks 32

Tasks wait for the network most of the time, so a pool of 8 executors fetches 8 pages at a time on any machine. This
process keeps the list of known pages; a task fetches one page and returns its links. Crawl only sites that allow it.
"""

import argparse
import re
from concurrent.futures import FIRST_COMPLETED, Future, wait
from http.client import HTTPException
from typing import NamedTuple
from urllib.error import HTTPError
from urllib.parse import urldefrag, urljoin, urlsplit
from urllib.request import build_opener

from cloudpar import Pool

_LINK = re.compile(r'<a\s[^>]*href="([^"]+)"', re.IGNORECASE)


class Page(NamedTuple):
    """What a task found at an address: the links of a page, or an error."""

    url: str
    links: list[str]
    error: str = ""


def fetch(url: str) -> Page:
    """One page. A page that cannot be read is a result like others, and no exception."""
    opener = build_opener()
    opener.addheaders = [("User-Agent", "cloudpar-example")]
    try:
        with opener.open(url, timeout=20) as reply:
            html = reply.read().decode("utf-8", "replace")
    except HTTPError as error:
        return Page(url, [], f"status {error.status}")
    except (OSError, HTTPException) as error:
        return Page(url, [], str(error))
    return Page(url, [urldefrag(urljoin(url, link)).url for link in _LINK.findall(html)])


def crawl(pool: Pool, start: str, limit: int) -> list[Page]:
    """All pages of one host, at most `limit`, in the order in which they come."""
    known, pages = {start}, list[Page]()
    running: set[Future[Page]] = {pool.submit(fetch, start)}
    while running:
        done, running = wait(running, return_when=FIRST_COMPLETED)
        for page in (future.result() for future in done):
            pages.append(page)
            for link in page.links:
                if link not in known and urlsplit(link).netloc == urlsplit(start).netloc and len(known) < limit:
                    known.add(link)
                    running.add(pool.submit(fetch, link))
    return pages


def main() -> None:
    """Crawl, and print what is broken."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("--tasks", type=int, default=8, help="pages that are fetched at a time")
    parser.add_argument("--limit", type=int, default=1_000, help="pages at most")
    arguments = parser.parse_args()
    with Pool(workers=arguments.tasks) as pool:
        pages = crawl(pool, arguments.url, arguments.limit)
    for page in pages:
        if page.error:
            print(f"{page.url}: {page.error}")
    print(f"{len(pages)} pages, {sum(bool(page.error) for page in pages)} of them broken")


if __name__ == "__main__":
    main()

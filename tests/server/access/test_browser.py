"""Logins and links in a browser: cookies, forms of other sites, pages without scripts."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.responses import HTMLResponse
from starlette.routing import Route

import asl
import asl.server
from asl.server.access.links import LinkSigner
from asl.server.access.secret import StoreSecret
from asl.server.access.users import Users
from asl.service.server import serving
from tests.server.access.people import ANN, PEOPLE, asking
from tests.server.browser import browser_page

PICTURES = os.environ.get("ASL_PICTURES")
"""Folder for screenshots; None for none."""


@pytest.fixture
def store(tmp_path: Any) -> Iterator[asl.Store]:
    with asl.open_store(tmp_path / "runs.db") as opened:
        prompt = {"Title": "Publish the article?", "Text": "A longer text. " * 20}
        document = asking(Prompt=prompt, Policy={"RequireReason": True})
        opened.run(document, {"title": "News", "words": 800, "tags": ["a", "b"]}, name="order-17")
        yield opened


@pytest.fixture
def url(store: asl.Store) -> Iterator[str]:
    with serving(asl.server.app(store, users=Users(PEOPLE), concurrency=0)) as found:
        yield found


def shoot(page: Any, name: str) -> None:
    if PICTURES is not None:
        page.screenshot(path=os.path.join(PICTURES, f"{name}.png"), full_page=True)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_login_and_logout(url: str, scheme: str) -> None:
    with browser_page(color_scheme=scheme) as page:
        page.goto(f"{url}/ui/executions")
        page.get_by_role("link", name="Log in").click()
        page.get_by_label("Token").fill("wrong")
        page.get_by_role("button", name="Log in").click()
        page.get_by_text("The token is unknown.").first.wait_for()
        shoot(page, f"login-{scheme}")
        page.get_by_label("Token").fill(ANN)
        page.get_by_role("button", name="Log in").click()
        page.wait_for_url(f"{url}/ui/executions")
        (cookie,) = page.context.cookies()
        assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
        page.get_by_role("button", name="Log out").click()
        page.get_by_text("Your session has ended.").first.wait_for()
        assert page.context.cookies() == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_link_on_a_phone_without_scripts(url: str, store: asl.Store, scheme: str) -> None:
    (request,) = store.pending()
    signer = LinkSigner(StoreSecret(store), url)
    link = signer.url_of("default", request, "ann", store.clock.now())
    phone = {"width": 390, "height": 800}
    with browser_page(java_script_enabled=False, viewport=phone, color_scheme=scheme) as page:
        page.goto(f"{link}?option=approve")
        shoot(page, f"link-{scheme}")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        page.get_by_label("Comment").fill("read it")
        page.get_by_role("button", name="approve").click()
        page.get_by_text("The decision is").first.wait_for()
        page.goto(link)
        page.get_by_text("this link was used already").first.wait_for()
    assert store.resume("order-17").output["comment"] == "read it"


def test_pages_of_another_site_decide_nothing(url: str, store: asl.Store) -> None:
    """Another port of the same machine is another origin, but the same site."""
    (request,) = store.pending()
    link = LinkSigner(StoreSecret(store), url).url_of("default", request, None, store.clock.now())
    forms = f"""
        <form id="link" method="post" action="{link}"><input name="option" value="approve">
        <input name="comment" value="x"></form>
        <form id="cancel" method="post" action="{url}/ui/executions/order-17/stop"></form>
        <form id="logout" method="post" action="{url}/logout"></form>
        <iframe id="frame" src="{url}/login"></iframe>
    """
    evil = Starlette(routes=[Route("/", lambda request: HTMLResponse(forms))])
    with serving(evil) as other, browser_page() as page:
        page.goto(f"{url}/login")
        page.get_by_label("Token").fill(ANN)
        page.get_by_role("button", name="Log in").click()
        for form in ("link", "cancel", "logout"):
            page.goto(other)
            with page.expect_navigation() as navigation:
                page.evaluate(f"document.getElementById('{form}').submit()")
            assert navigation.value.status == 403
        page.goto(other)
        assert page.frames[1].url.startswith("chrome-error:") or "Token" not in (
            page.frames[1].content()
        )
        page.goto(f"{url}/ui/executions")
        assert page.get_by_role("button", name="Log out").is_visible()
    assert len(store.pending()) == 1
    assert store.get("order-17").status == "PAUSED"

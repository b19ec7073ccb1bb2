"""Every route of the service, with users who may not use it: of another project, without rights."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from starlette.routing import Route
from starlette.testclient import TestClient

import asl
from asl.server.access.users import Users
from asl.server.api.application import ROUTERS
from asl.server.pages.application import ROUTES as PAGES
from asl.server.views import request_key
from asl.stores.audit import list_entries
from tests.server.access.people import ANN, ASK, EVE, PEOPLE, VIC, bearer, served

SECRET = "zanzibar"
"""A text in all data of the project that must not be seen."""
UNCHANGING = {"/check", "/convert", "/graph", "/plan", "/executions/{key}/feedback"}
"""Routes with POST that a viewer may use."""


def walked() -> Iterator[tuple[str, str]]:
    """Yield method and path of every route."""
    for router in ROUTERS:
        for route in router.routes:
            assert isinstance(route, Route)
            for method in sorted(route.methods or ()):
                yield method, f"/api/v1{route.path}"
    for page in PAGES:
        assert isinstance(page, Route)
        for method in sorted((page.methods or set()) - {"HEAD"}):
            yield method, f"/ui{page.path}"
    yield "GET", "/api/v1/openapi.json"


ROUTES = [*walked()]
PUBLIC = {("GET", "/api/v1/openapi.json"), ("GET", "/ui/static/{name}"), ("GET", "/ui/")}
"""Routes that show nothing of a project: descriptions, files, redirections."""


@pytest.fixture(scope="module")
def stores() -> Iterator[dict[str, asl.Store]]:
    with asl.open_store("memory:") as first, asl.open_store("memory:") as second:
        document = json.loads(json.dumps(ASK).replace("Ship it?", SECRET))
        first.run(document, {"text": SECRET}, name=SECRET)
        second.run(ASK, {"text": "plain"}, name="plain")
        yield {"first": first, "other": second}


@pytest.fixture(scope="module")
def client(stores: dict[str, asl.Store]) -> Iterator[TestClient]:
    with served(stores) as found:
        yield found


def filled(path: str, store: asl.Store) -> str:
    """Return a path with the names of what is there."""
    (request,) = store.pending()
    is_request = path.startswith(("/api/v1/requests", "/ui/requests", "/ui/inbox"))
    values = {"key": request_key(str(request["requestId"])) if is_request else SECRET, "id": "1"}
    if path.startswith("/ui/static"):
        values["name"] = "app.css"
    return re.sub(r"\{(\w+)(?::\w+)?\}", lambda found: values.get(found[1], SECRET), path)


def send(client: TestClient, method: str, path: str, **headers: str) -> Any:
    kind = {"json": {}} if path.startswith("/api") else {"data": {"x": "1"}}
    body = {} if method == "GET" else kind
    return client.request(method, f"/projects/first{path}", headers=headers, **body)


@pytest.mark.parametrize(("method", "path"), ROUTES)
def test_user_of_another_project_sees_nothing(
    client: TestClient, stores: dict[str, asl.Store], method: str, path: str
) -> None:
    answer = send(client, method, filled(path, stores["first"]), **bearer(EVE))
    if (method, path) not in PUBLIC:
        assert answer.status_code == 403, answer.text
    assert SECRET not in answer.text.replace(filled(path, stores["first"]), "")


@pytest.mark.parametrize(("method", "path"), ROUTES)
@pytest.mark.parametrize("header", [{}, bearer("wrong"), {"Cookie": "asl_session=x"}])
def test_nobody_gets_in_without_credentials(
    stores: dict[str, asl.Store], method: str, path: str, header: dict[str, str]
) -> None:
    with served(stores) as client:
        answer = send(client, method, filled(path, stores["first"]), **header)
    if (method, path) not in PUBLIC:
        assert answer.status_code == 401, answer.text
    assert SECRET not in answer.text.replace(filled(path, stores["first"]), "")


CHANGING = [
    each
    for each in ROUTES
    if each[0] != "GET" and each[1].removeprefix("/api/v1") not in UNCHANGING
]


@pytest.mark.parametrize(("method", "path"), CHANGING)
def test_viewer_changes_nothing_and_is_recorded(
    client: TestClient, stores: dict[str, asl.Store], method: str, path: str
) -> None:
    store = stores["first"]
    before = len(list_entries(store.session, limit=1000))
    place = filled(path, store)
    answer = send(client, method, place, **bearer(VIC))
    assert answer.status_code == 403, answer.text
    found = list_entries(store.session, limit=1000)
    assert len(found) == before + 1
    assert (found[0].user, found[0].action) == ("vic", "access.refused")
    assert found[0].target == f"/projects/first{place}"
    assert [each.name for each in store.executions()] == [SECRET]


def test_projects_of_a_user_are_listed(client: TestClient) -> None:
    for token, names in ((ANN, ["first", "other"]), (EVE, ["other"])):
        answer = client.get("/", headers=bearer(token))
        assert re.findall(r'href="/projects/(\w+)/ui/"', answer.text) == names
    assert client.get("/").headers["location"] == "/login"


def test_session_is_for_all_projects_of_its_user(client: TestClient) -> None:
    answer = client.post("/login", data={"token": EVE})
    assert answer.headers["location"] == "/"
    assert client.get("/projects/other/ui/executions").status_code == 200
    assert client.get("/projects/first/ui/executions").status_code == 403
    answer = client.get("/projects/other/ui/login")
    assert answer.headers["location"] == "/login?next=%2Fprojects%2Fother%2Fui%2F"
    client.cookies.clear()


def test_logins_are_recorded_where_the_user_works(client: TestClient, stores: Any) -> None:
    """Operators of one project do not see the users of another one."""
    client.post("/login", data={"token": EVE})
    client.cookies.clear()
    users = {each.user for each in list_entries(stores["first"].session, limit=1000)}
    assert "eve" not in users
    assert list_entries(stores["other"].session)[0].action == "login"


def test_unknown_project(client: TestClient) -> None:
    assert client.get("/projects/none/api/v1/me", headers=bearer(ANN)).status_code == 404


def test_names_of_projects_are_safe_in_paths() -> None:
    with asl.open_store("memory:") as store:
        for name in ("", "a/b", "..", "a b", "ü"):
            with pytest.raises(asl.AslError, match="name of a project"):
                asl.server.app({name: store}, users=Users(PEOPLE))


def test_every_route_of_the_application_is_known(client: TestClient) -> None:
    """A new route at the top or of a project belongs into the tests of this module."""
    application: Any = client.app
    tops = {route.path for route in application.routes}
    assert tops == {
        *("/", "/login", "/login/oidc", "/login/oidc/callback", "/logout", "/links/{token}"),
        *("/metrics", "/healthz", "/readyz"),
        *("/projects/first", "/projects/other"),
    }
    (first,) = [route for route in application.routes if route.path == "/projects/first"]
    assert {route.path for route in first.routes} == {
        *("/", "/api/v1", "/ui", "/ui/login", "/ui/logout", "/hooks/{name}"),
    }


def test_metrics_show_the_projects_of_the_user(client: TestClient) -> None:
    assert client.get("/metrics").status_code == 401
    assert 'project="first"' in client.get("/metrics", headers=bearer(ANN)).text
    seen = client.get("/metrics", headers=bearer(EVE)).text
    assert 'project="other"' in seen
    assert "first" not in seen
    assert SECRET not in seen
    for path in ("/healthz", "/readyz"):
        text = client.get(path).text
        assert "first" not in text
        assert SECRET not in text

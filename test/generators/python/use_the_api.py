"""What somebody writes who has only the client that openapi-python-client generated: see the script that runs it."""

import sys

from api_client import AuthenticatedClient, Client
from api_client.api.secrets import create_secret, get_secret_by_name
from api_client.api.sign_in_and_account import register
from api_client.api.workspaces_and_members import list_workspaces
from api_client.models import CreateSecretInput, CreateSecretInputValue, RegisterInput


def main(url: str) -> None:
    person = RegisterInput(email="py@example.test", username="python", password="correct horse battery")
    session = register.sync(client=Client(base_url=url), body=person)
    org_id = session.user.settings["current_org_id"]
    client = AuthenticatedClient(base_url=url, token=session.access_token)

    value = CreateSecretInputValue.from_dict({"api_key": "sk-1"})
    made = create_secret.sync_detailed(
        org_id, client=client, body=CreateSecretInput(name="openai", secret_type="api_key", value=value)
    )
    assert made.status_code == 201, made.content
    secret = get_secret_by_name.sync(org_id, "openai", client=client, include_value=True)
    assert secret.value.to_dict() == {"api_key": "sk-1"}, secret

    page = list_workspaces.sync(org_id, client=client, limit=1)
    assert [workspace.name for workspace in page.workspaces] == ["Default workspace"], page
    refused = create_secret.sync_detailed(
        org_id, client=client, body=CreateSecretInput(name="openai", secret_type="api_key", value=value)
    )
    assert refused.status_code == 409 and refused.parsed.error == "RESOURCE_ALREADY_EXISTS", refused.content


main(sys.argv[1])

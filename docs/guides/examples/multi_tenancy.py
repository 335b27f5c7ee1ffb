"""Tenants of very different sizes in one container, and a client that sees only its own tenant."""

import os

from azure.cosmos import CosmosClient, PartitionKey
from azure.cosmos.exceptions import CosmosHttpResponseError

from common import database, is_full

PAYLOAD = "x" * 1500
USERS = 5


def fill(container, tenant, users, each):
    for user in range(users):
        for number in range(each):
            name = f"user-{user}"
            container.create_item(
                {"id": f"{name}-{number}", "tenantId": tenant, "userId": name, "payload": PAYLOAD}
            )


def tenant_alone(made):
    """The tenant as the key: the huge one does not fit."""
    container = made.create_container("by-tenant", PartitionKey("/tenantId"), offer_throughput=10000)
    try:
        fill(container, "huge", USERS, 20)
    except CosmosHttpResponseError as error:
        if not is_full(error):
            raise
        print("keyed by the tenant alone, the huge tenant is refused")
        return
    raise AssertionError("the limit was never met: start the server with --logical-partition-bytes 64KiB")


def hierarchical(made):
    """Tenant and user: the limit holds for each user."""
    key = PartitionKey(["/tenantId", "/userId"], kind="MultiHash")
    container = made.create_container("by-tenant-and-user", key, offer_throughput=12000)
    fill(container, "huge", USERS, 20)
    fill(container, "small", 1, 3)
    one = container.read_item("user-3-7", partition_key=["huge", "user-3"])
    of_tenant = list(container.query_items("SELECT VALUE c.id FROM c", partition_key=["huge"]))
    print(f"with a hierarchical key the huge tenant has {len(of_tenant)} items")
    assert one["userId"] == "user-3" and len(of_tenant) == USERS * 20
    # What belongs to one user changes in one transaction.
    changes = [("upsert", ({"id": "profile", "tenantId": "small", "userId": "user-0"},)), ("delete", ("user-0-0",))]
    container.execute_item_batch(changes, partition_key=["small", "user-0"])
    return container


def own_tenant_only(made):
    """A token for one tenant opens nothing of the others."""
    container = made.create_container("for-tokens", PartitionKey("/tenantId"), offer_throughput=400)
    for tenant in ["a", "b"]:
        container.create_item({"id": "1", "tenantId": tenant})
    user = made.create_user({"id": "client-of-a"})
    permission = user.create_permission(
        {"id": "read-a", "permissionMode": "Read", "resource": container.container_link, "resourcePartitionKey": ["a"]}
    )
    token = permission.properties["_token"]
    endpoint = os.environ.get("ORRERY_ENDPOINT", "http://localhost:8081/")
    with CosmosClient(endpoint, {container.container_link: token}) as client:
        seen = client.get_database_client(made.id).get_container_client(container.id)
        assert seen.read_item("1", partition_key="a")["tenantId"] == "a"
        try:
            seen.read_item("1", partition_key="b")
        except CosmosHttpResponseError as error:
            assert error.status_code == 403, error
            print("a token for tenant a does not open tenant b")
            return
        raise AssertionError("the token opened another tenant")


def main():
    with database("multi-tenancy") as made:
        tenant_alone(made)
        hierarchical(made)
        own_tenant_only(made)


if __name__ == "__main__":
    main()

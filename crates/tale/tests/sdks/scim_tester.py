"""scim2-tester, the checker of SCIM servers, against the door of directories: it must find nothing."""

import os

import httpx2
from scim2_client.engines.httpx2 import SyncSCIMClient
from scim2_tester import Status, check_server

http = httpx2.Client(
    base_url=os.environ["TALE"] + "/scim/v2",
    headers={"Authorization": "Bearer " + os.environ["KEY"]},
    timeout=60,
)
results = check_server(SyncSCIMClient(http))
bad = [result for result in results if result.status is not Status.SUCCESS]
for result in bad:
    print(result.status.name, result.title, result.resource_type, result.reason, result.data)
assert not bad, f"{len(bad)} of {len(results)}"
assert len(results) > 60, len(results)
print(f"{len(results)} checks")
print("ok")

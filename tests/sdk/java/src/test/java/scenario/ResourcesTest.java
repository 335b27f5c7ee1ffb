package scenario;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static scenario.Server.item;
import static scenario.Server.refused;

import com.azure.cosmos.CosmosAsyncClient;
import com.azure.cosmos.CosmosClient;
import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.models.ContainerChildResourceType;
import com.azure.cosmos.models.CosmosContainerProperties;
import com.azure.cosmos.models.CosmosPermissionProperties;
import com.azure.cosmos.models.CosmosQueryRequestOptions;
import com.azure.cosmos.models.CosmosStoredProcedureProperties;
import com.azure.cosmos.models.CosmosStoredProcedureRequestOptions;
import com.azure.cosmos.models.CosmosUserProperties;
import com.azure.cosmos.models.PartitionKey;
import com.azure.cosmos.models.PermissionMode;
import com.azure.cosmos.models.ThroughputProperties;
import com.azure.cosmos.models.UniqueKey;
import com.azure.cosmos.models.UniqueKeyPolicy;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;

class ResourcesTest extends Scenario {
    @Test
    void databasesContainersAndTheirThroughput() {
        refused(409, () -> client.createDatabase(database.getId()));
        assertEquals(200, client.createDatabaseIfNotExists(database.getId()).getStatusCode());
        CosmosContainerProperties settings = new CosmosContainerProperties("settings", "/pk")
            .setDefaultTimeToLiveInSeconds(3600)
            .setUniqueKeyPolicy(new UniqueKeyPolicy().setUniqueKeys(List.of(new UniqueKey(List.of("/mail")))));
        CosmosContainer container = Server.container(database, settings, 1000);
        CosmosContainerProperties read = container.read().getProperties();
        assertEquals(3600, read.getDefaultTimeToLiveInSeconds());
        assertEquals(List.of("/pk"), read.getPartitionKeyDefinition().getPaths());
        read.setDefaultTimeToLiveInSeconds(null);
        assertEquals(null, container.replace(read).getProperties().getDefaultTimeToLiveInSeconds());
        container.createItem(item("1", "a").put("mail", "m"));
        refused(409, () -> container.createItem(item("2", "a").put("mail", "m")));
        assertEquals(1000, container.readThroughput().getProperties().getManualThroughput());
        container.replaceThroughput(ThroughputProperties.createManualThroughput(1200));
        assertEquals(1200, container.readThroughput().getProperties().getManualThroughput());
        refused(400, () -> container.replaceThroughput(ThroughputProperties.createManualThroughput(1)));
        assertTrue(database.readAllContainers().stream().anyMatch(found -> found.getId().equals("settings")));
        container.delete();
        refused(404, container::read);
    }

    @Test
    void storedProcedures() {
        CosmosContainer container = Server.container(database, "scripts", 400);
        container.getScripts().createStoredProcedure(new CosmosStoredProcedureProperties("double", """
            function (prefix, count) {
                const collection = getContext().getCollection();
                for (let n = 0; n < count; n++) {
                    const link = collection.getSelfLink();
                    collection.createDocument(link, { id: prefix + n, pk: "a" }, (error) => { if (error) throw error; });
                }
                getContext().getResponse().setBody({ made: count });
            }"""));
        CosmosStoredProcedureRequestOptions place =
            new CosmosStoredProcedureRequestOptions().setPartitionKey(new PartitionKey("a"));
        String answer = container.getScripts().getStoredProcedure("double")
            .execute(List.of("s", 3), place).getResponseAsString();
        assertEquals("{\"made\":3}", answer);
        assertEquals(3, container.readAllItems(new PartitionKey("a"), ObjectNode.class).stream().count());
        // The second of these is there already, so the first is undone.
        refused(400, () -> container.getScripts().getStoredProcedure("double").execute(List.of("s", 1), place));
        assertEquals(3, container.readAllItems(new PartitionKey("a"), ObjectNode.class).stream().count());
    }

    @Test
    void usersAndPermissions() {
        CosmosContainer container = Server.container(database, "secrets", 400);
        container.createItem(item("1", "a"));
        database.createUser(new CosmosUserProperties().setId("reader"));
        CosmosPermissionProperties wanted = new CosmosPermissionProperties()
            .setId("may-read")
            .setPermissionMode(PermissionMode.READ)
            .setContainerName("secrets");
        as(permission("reader", wanted), seen -> {
            assertEquals("1", read(seen, "1", "a"));
            refused(403, () -> seen.createItem(item("2", "a"), new PartitionKey("a"), null));
        });
    }

    @Test
    void permissionsToWriteAndForOneKey() {
        CosmosContainer container = Server.container(database, "shared", 400);
        container.createItem(item("1", "a"));
        container.createItem(item("1", "b"));
        database.createUser(new CosmosUserProperties().setId("writer"));
        as(permission("writer", may("write", PermissionMode.ALL)), seen -> {
            seen.createItem(item("2", "a"), new PartitionKey("a"), null);
            seen.upsertItem(item("2", "b"), new PartitionKey("b"), null);
            seen.deleteItem("2", new PartitionKey("b"), null);
            assertEquals("2", read(seen, "2", "a"));
        });
        PartitionKey key = new PartitionKey("a");
        as(permission("writer", may("write-a", PermissionMode.ALL).setResourcePartitionKey(key)), seen -> {
            seen.upsertItem(item("3", "a"), key, null);
            assertEquals("3", read(seen, "3", "a"));
            assertEquals(3, seen.queryItems("SELECT * FROM c", of(key), ObjectNode.class).stream().count());
            refused(403, () -> read(seen, "1", "b"));
            refused(403, () -> seen.upsertItem(item("3", "b"), new PartitionKey("b"), null));
        });
        as(permission("writer", may("read-a", PermissionMode.READ).setResourcePartitionKey(key)), seen -> {
            assertEquals("1", read(seen, "1", "a"));
            refused(403, () -> seen.deleteItem("1", key, null));
        });
        CosmosPermissionProperties one = may("read-1", PermissionMode.READ)
            .setResourcePath(ContainerChildResourceType.ITEM, "1").setResourcePartitionKey(key);
        as(permission("writer", one), seen -> {
            assertEquals("1", read(seen, "1", "a"));
            refused(403, () -> read(seen, "2", "a"));
            refused(403, () -> read(seen, "1", "b"));
        });
    }

    private static CosmosQueryRequestOptions of(PartitionKey key) {
        return new CosmosQueryRequestOptions().setPartitionKey(key);
    }

    private static CosmosPermissionProperties may(String id, PermissionMode mode) {
        return new CosmosPermissionProperties().setId(id).setPermissionMode(mode).setContainerName("shared");
    }

    /** Only the asynchronous client makes permissions. */
    private CosmosPermissionProperties permission(String user, CosmosPermissionProperties wanted) {
        try (CosmosAsyncClient owner = Server.connectAsync()) {
            return owner.getDatabase(database.getId()).getUser(user).createPermission(wanted, null).block().getProperties();
        }
    }

    /** The container as somebody sees it who has nothing but this permission. */
    private void as(CosmosPermissionProperties permission, Consumer<CosmosContainer> act) {
        try (CosmosClient client = Server.builder().resourceToken(permission.getToken()).buildClient()) {
            act.accept(client.getDatabase(database.getId()).getContainer(permission.getContainerName()));
        }
    }

    private static String read(CosmosContainer container, String id, String key) {
        return container.readItem(id, new PartitionKey(key), ObjectNode.class).getItem().get("id").asText();
    }
}

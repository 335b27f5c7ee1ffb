package scenario;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static scenario.Server.item;
import static scenario.Server.refused;

import com.azure.cosmos.CosmosAsyncClient;
import com.azure.cosmos.CosmosClient;
import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.models.CosmosContainerProperties;
import com.azure.cosmos.models.CosmosPermissionProperties;
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
        // Only the asynchronous client makes permissions.
        CosmosPermissionProperties permission;
        try (CosmosAsyncClient owner = Server.connectAsync()) {
            permission = owner.getDatabase(database.getId()).getUser("reader")
                .createPermission(wanted, null).block().getProperties();
        }
        try (CosmosClient reader = Server.builder().resourceToken(permission.getToken()).buildClient()) {
            CosmosContainer seen = reader.getDatabase(database.getId()).getContainer("secrets");
            assertEquals("1", seen.readItem("1", new PartitionKey("a"), ObjectNode.class).getItem().get("id").asText());
            refused(403, () -> seen.createItem(item("2", "a"), new PartitionKey("a"), null));
        }
    }
}

package scenario;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static scenario.Server.FOUR_PARTITIONS;
import static scenario.Server.item;
import static scenario.Server.refused;

import com.azure.cosmos.CosmosClient;
import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.CosmosException;
import com.azure.cosmos.models.CosmosQueryRequestOptions;
import com.azure.cosmos.models.PartitionKey;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;

/** Clients know where a container and its partitions are; when that changes, they find out by themselves. */
class MovesTest extends Scenario {
    private static final int ITEMS = 120;
    private static final int WRITERS = 4;

    @Test
    void aContainerThatIsDeletedAndMadeAnewIsFound() {
        CosmosContainer known = Server.container(database, "again", FOUR_PARTITIONS);
        for (int n = 0; n < 20; n++) {
            known.createItem(item("old" + n, "p" + n));
        }
        try (CosmosClient other = Server.connect()) {
            CosmosContainer same = other.getDatabase(database.getId()).getContainer("again");
            same.delete();
            refused(404, () -> known.readItem("old0", new PartitionKey("p0"), ObjectNode.class));
            Server.container(other.getDatabase(database.getId()), "again", 400);
            same.createItem(item("new", "p1"));
        }
        long began = System.nanoTime();
        assertEquals("p1", known.readItem("new", new PartitionKey("p1"), ObjectNode.class).getItem().get("pk").asText());
        refused(404, () -> known.readItem("old1", new PartitionKey("p1"), ObjectNode.class));
        known.createItem(item("later", "p2"));
        assertEquals(List.of("later", "new"), ids(known));
        took("finding the container that was made anew", System.nanoTime() - began);
    }

    @Test
    void aContainerIsReKeyedUnderItsClients() throws Exception {
        CosmosContainer container = Server.container(database, "orders", 10_000);
        for (int n = 0; n < ITEMS; n++) {
            container.createItem(order(n, 0));
        }
        Map<Integer, Integer> versions = new ConcurrentHashMap<>();
        AtomicBoolean isDone = new AtomicBoolean();
        AtomicLong slowest = new AtomicLong();
        List<Throwable> failures = new ArrayList<>();
        List<Thread> writers = new ArrayList<>();
        for (int number = 0; number < WRITERS; number++) {
            int share = number;
            writers.add(new Thread(() -> write(share, versions, isDone, slowest, failures)));
        }
        writers.forEach(Thread::start);
        String job = Server.manage("POST", "jobs", """
            {"kind":"rekey","container":{"database":"%s","container":"orders"},"completesItself":true,
             "partitionKey":{"paths":["/region"],"kind":"Hash","version":2}}""".formatted(database.getId())).get("id").asText();
        JsonNode outcome = Server.manage("GET", "jobs/" + job, null);
        while (!List.of("completed", "failed", "cancelled").contains(outcome.get("state").asText())) {
            Thread.sleep(100);
            outcome = Server.manage("GET", "jobs/" + job, null);
        }
        assertEquals("completed", outcome.get("state").asText(), outcome.toString());
        // They go on with the new key.
        Thread.sleep(2000);
        isDone.set(true);
        for (Thread writer : writers) {
            writer.join();
        }
        assertEquals(List.of(), failures);
        assertEquals(List.of("/region"), container.read().getProperties().getPartitionKeyDefinition().getPaths());
        Map<Integer, Integer> found = new TreeMap<>();
        container.queryItems("SELECT c.n, c.version FROM c", new CosmosQueryRequestOptions(), ObjectNode.class)
            .forEach(row -> found.put(row.get("n").asInt(), row.get("version").asInt()));
        assertEquals(new TreeMap<>(versions), found);
        took("the slowest write while a container was re-keyed", slowest.get());
    }

    private static ObjectNode order(int n, int version) {
        return item("i" + n, "p" + n % 7).put("region", "r" + n % 11).put("n", n).put("version", version);
    }

    /** Writes its share again and again with a client that knows the container from before. */
    private void write(
        int share, Map<Integer, Integer> versions, AtomicBoolean isDone, AtomicLong slowest, List<Throwable> failures) {
        try (CosmosClient own = Server.connect()) {
            CosmosContainer orders = own.getDatabase(database.getId()).getContainer("orders");
            for (int version = 1; !isDone.get(); version++) {
                for (int n = share; n < ITEMS; n += WRITERS) {
                    long began = System.nanoTime();
                    orders.upsertItem(order(n, version));
                    slowest.accumulateAndGet(System.nanoTime() - began, Math::max);
                    versions.put(n, version);
                }
            }
        } catch (CosmosException error) {
            synchronized (failures) {
                failures.add(error);
            }
        }
    }

    private static List<String> ids(CosmosContainer container) {
        return container.queryItems("SELECT VALUE c.id FROM c", new CosmosQueryRequestOptions(), JsonNode.class)
            .stream().map(JsonNode::asText).sorted().toList();
    }

    private static void took(String what, long nanos) {
        System.out.printf("%s: %d ms%n", what, nanos / 1_000_000);
        assertTrue(nanos < 30_000_000_000L, what);
    }
}

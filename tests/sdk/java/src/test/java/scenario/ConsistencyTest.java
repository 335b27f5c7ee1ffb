package scenario;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static scenario.Server.FOUR_PARTITIONS;
import static scenario.Server.item;
import static scenario.Server.refused;

import com.azure.cosmos.ConsistencyLevel;
import com.azure.cosmos.CosmosClient;
import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.models.CosmosBatch;
import com.azure.cosmos.models.CosmosChangeFeedRequestOptions;
import com.azure.cosmos.models.CosmosQueryRequestOptions;
import com.azure.cosmos.models.FeedRange;
import com.azure.cosmos.models.PartitionKey;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** All levels of consistency, for which the server of these scenarios has an account at the strongest. */
class ConsistencyTest extends Scenario {
    private static final int COUNT = 24;
    /** A client in direct mode that misses something in an answer asks again for thirty seconds. */
    private static final Duration AT_ONCE = Duration.ofSeconds(20);

    static List<ConsistencyLevel> levels() {
        return List.of(
            ConsistencyLevel.STRONG,
            ConsistencyLevel.BOUNDED_STALENESS,
            ConsistencyLevel.SESSION,
            ConsistencyLevel.CONSISTENT_PREFIX,
            ConsistencyLevel.EVENTUAL);
    }

    @ParameterizedTest
    @MethodSource("levels")
    void everythingIsReadAtEachLevel(ConsistencyLevel level) {
        String name = "at-" + level;
        Server.container(database, name, FOUR_PARTITIONS);
        try (CosmosClient reader = Server.builder().key(Server.required("ORRERY_KEY")).consistencyLevel(level).buildClient()) {
            CosmosContainer items = reader.getDatabase(database.getId()).getContainer(name);
            refused(404, () -> items.readItem("none", new PartitionKey("p1"), ObjectNode.class));
            long began = System.nanoTime();
            for (int n = 0; n < COUNT; n++) {
                String id = "i" + n;
                PartitionKey key = new PartitionKey("p" + n);
                items.createItem(item(id, "p" + n).put("n", n), key, null);
                assertEquals(n, items.readItem(id, key, ObjectNode.class).getItem().get("n").asInt());
            }
            CosmosBatch batch = CosmosBatch.createCosmosBatch(new PartitionKey("p0"));
            batch.readItemOperation("i0");
            batch.upsertItemOperation(item("other", "p0").put("n", COUNT));
            assertTrue(items.executeCosmosBatch(batch).isSuccessStatusCode());
            List<Integer> numbers = items
                .queryItems("SELECT VALUE c.n FROM c ORDER BY c.n", new CosmosQueryRequestOptions(), JsonNode.class)
                .stream().map(JsonNode::asInt).toList();
            assertEquals(COUNT + 1, numbers.size());
            assertEquals(COUNT, numbers.get(COUNT));
            long changes = items.queryChangeFeed(
                CosmosChangeFeedRequestOptions.createForProcessingFromBeginning(FeedRange.forFullRange()),
                ObjectNode.class).stream().count();
            assertEquals(COUNT + 1, changes);
            items.deleteItem("i1", new PartitionKey("p1"), null);
            refused(404, () -> items.readItem("i1", new PartitionKey("p1"), ObjectNode.class));
            Duration took = Duration.ofNanos(System.nanoTime() - began);
            assertTrue(took.compareTo(AT_ONCE) < 0, level + " took " + took);
        }
    }
}

package scenario;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static scenario.Server.item;

import com.azure.cosmos.CosmosClient;
import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.CosmosException;
import com.azure.cosmos.ThrottlingRetryOptions;
import com.azure.cosmos.models.CosmosItemResponse;
import com.azure.cosmos.models.CosmosQueryRequestOptions;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.Test;

/** Real throttling: the server answers 429 with a time to wait, and the SDK waits and tries again. */
class ThrottlingTest extends Scenario {
    private static final int WRITES = 40;
    private static final int WRITERS = 8;

    /** Every property is an index term to write, so these small items are expensive ones. */
    private static ObjectNode expensive(int number) {
        ObjectNode value = item("item-" + number, Integer.toString(number));
        for (int property = 0; property < 500; property++) {
            value.put("p" + property, property);
        }
        return value;
    }

    private CosmosClient connect(int retries) {
        return Server.builder()
            .key(Server.required("ORRERY_KEY"))
            .throttlingRetryOptions(new ThrottlingRetryOptions()
                .setMaxRetryAttemptsOnThrottledRequests(retries)
                .setMaxRetryWaitTime(Duration.ofSeconds(120)))
            .buildClient();
    }

    @Test
    void refusedWritesAreTriedAgain() throws Exception {
        Server.container(database, "slow", 400);
        ExecutorService writers = Executors.newFixedThreadPool(WRITERS);
        try (CosmosClient patient = connect(100); CosmosClient impatient = connect(0)) {
            CosmosContainer container = patient.getDatabase(database.getId()).getContainer("slow");
            CosmosContainer refused = impatient.getDatabase(database.getId()).getContainer("slow");
            List<Future<CosmosItemResponse<ObjectNode>>> writes = new ArrayList<>();
            for (int number = 0; number < WRITES; number++) {
                ObjectNode value = expensive(number);
                writes.add(writers.submit(() -> container.upsertItem(value)));
            }
            CosmosException refusal = null;
            for (int number = 0; number < WRITES && refusal == null; number++) {
                try {
                    refused.upsertItem(expensive(0));
                } catch (CosmosException error) {
                    refusal = error;
                }
            }
            assertTrue(refusal != null, "no request was throttled");
            assertEquals(429, refusal.getStatusCode());
            assertEquals(3200, refusal.getSubStatusCode());
            assertTrue(refusal.getRetryAfterDuration().toMillis() > 0);
            for (Future<CosmosItemResponse<ObjectNode>> write : writes) {
                write.get();
            }
            assertEquals(WRITES, container
                .queryItems("SELECT c.id FROM c", new CosmosQueryRequestOptions(), JsonNode.class).stream().count());
        } finally {
            writers.shutdownNow();
        }
    }
}

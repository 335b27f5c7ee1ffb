package scenario;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static scenario.Server.item;

import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.models.CosmosQueryRequestOptions;
import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.Test;

/** A burst that the budget can serve is served: nobody changes how often this SDK tries again. */
class BurstTest extends Scenario {
    private static final int WRITES = 600;
    private static final int WRITERS = 50;

    @Test
    void aBurstGetsThroughWithDefaultRetries() throws Exception {
        CosmosContainer container = Server.container(database, "burst", 400);
        ExecutorService writers = Executors.newFixedThreadPool(WRITERS);
        try {
            List<Future<Double>> writes = new ArrayList<>();
            long began = System.nanoTime();
            for (int number = 0; number < WRITES; number++) {
                var value = item("i" + number, "p" + number).put("n", number);
                writes.add(writers.submit(() -> container.createItem(value).getRequestCharge()));
            }
            double charge = 0;
            for (Future<Double> write : writes) {
                charge += write.get();
            }
            double seconds = (System.nanoTime() - began) / 1e9;
            double ideal = charge / 400;
            System.out.printf("%.2f times what the budget needs%n", seconds / ideal);
            // The budget decides how long it takes, not the client, which has a second for its connections and first steps.
            assertTrue(seconds < 1.3 * ideal + 1,
                String.format("%.1f s for %.0f RU, which are %.1f s", seconds, charge, ideal));
            assertEquals(WRITES, container
                .queryItems("SELECT c.id FROM c", new CosmosQueryRequestOptions(), JsonNode.class).stream().count());
        } finally {
            writers.shutdownNow();
        }
    }
}

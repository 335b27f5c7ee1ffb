package scenario;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static scenario.Server.FOUR_PARTITIONS;
import static scenario.Server.item;

import com.azure.cosmos.ChangeFeedProcessor;
import com.azure.cosmos.ChangeFeedProcessorBuilder;
import com.azure.cosmos.CosmosAsyncClient;
import com.azure.cosmos.CosmosAsyncDatabase;
import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.models.ChangeFeedProcessorOptions;
import com.azure.cosmos.models.CosmosContainerProperties;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.Test;

/** The change feed processor: hosts that share the ranges of a container through leases. */
class ProcessorTest extends Scenario {
    private static final Duration PATIENCE = Duration.ofSeconds(90);

    private ChangeFeedProcessor host(CosmosAsyncDatabase asynchronous, String name, Map<String, String> seen) {
        return new ChangeFeedProcessorBuilder()
            .hostName(name)
            .feedContainer(asynchronous.getContainer("source"))
            .leaseContainer(asynchronous.getContainer("leases"))
            // Leases are items whose ids are their keys, and with names as people give them they are long.
            .options(new ChangeFeedProcessorOptions()
                .setLeasePrefix("orders-of-all-tenants-to-the-warehouse-and-to-the-search-index-in-west-europe-production")
                .setStartFromBeginning(true)
                .setFeedPollDelay(Duration.ofMillis(200))
                .setLeaseAcquireInterval(Duration.ofSeconds(1))
                .setLeaseRenewInterval(Duration.ofSeconds(2))
                .setLeaseExpirationInterval(Duration.ofSeconds(10)))
            .handleLatestVersionChanges(changes ->
                changes.forEach(change -> seen.put(change.getCurrent().get("id").asText(), name)))
            .buildChangeFeedProcessor();
    }

    @Test
    void hostsShareTheWorkAndTakeOverFromEachOther() throws InterruptedException {
        CosmosContainer source = Server.container(database, "source", FOUR_PARTITIONS);
        Server.container(database, new CosmosContainerProperties("leases", "/id"), 1000);
        try (CosmosAsyncClient client = Server.connectAsync()) {
            CosmosAsyncDatabase asynchronous = client.getDatabase(database.getId());
            Map<String, String> seen = new ConcurrentHashMap<>();
            for (int n = 0; n < 40; n++) {
                source.createItem(item("a" + n, "p" + n));
            }
            ChangeFeedProcessor first = host(asynchronous, "first", seen);
            first.start().block(PATIENCE);
            until("the first host sees what was there", () -> seen.size() == 40);
            ChangeFeedProcessor second = host(asynchronous, "second", seen);
            second.start().block(PATIENCE);
            AtomicInteger next = new AtomicInteger();
            until("the hosts share the ranges", () -> {
                int number = next.getAndIncrement();
                source.createItem(item("b" + number, "q" + number));
                return seen.containsValue("second");
            });
            first.stop().block(PATIENCE);
            int before = seen.size();
            for (int n = 0; n < 20; n++) {
                source.createItem(item("c" + n, "p" + n));
            }
            until("the second host goes on alone", () ->
                seen.entrySet().stream().filter(entry -> entry.getKey().startsWith("c")).count() == 20);
            assertTrue(seen.size() > before);
            assertEquals(4, second.getCurrentState().block(PATIENCE).size());
            second.stop().block(PATIENCE);
        }
    }

    private static void until(String what, BooleanSupplier holds) throws InterruptedException {
        long end = System.nanoTime() + PATIENCE.toNanos();
        while (!holds.getAsBoolean()) {
            assertTrue(System.nanoTime() < end, what);
            Thread.sleep(200);
        }
    }
}

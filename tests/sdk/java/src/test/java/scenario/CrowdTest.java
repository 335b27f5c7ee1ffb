package scenario;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static scenario.Server.FOUR_PARTITIONS;
import static scenario.Server.item;

import com.azure.cosmos.CosmosAsyncClient;
import com.azure.cosmos.CosmosAsyncContainer;
import com.azure.cosmos.CosmosException;
import com.azure.cosmos.models.CosmosItemResponse;
import com.azure.cosmos.models.PartitionKey;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** Many answers at once: each is that of its own request, and none is asked for twice. */
class CrowdTest extends Scenario {
    private static final int ITEMS = 120;
    private static final int READS = 6_000;
    private static final int AT_ONCE = 120;

    /** Requests of the SDK's own, about accounts, containers and addresses. */
    private static final int OTHERS = 100;

    private record Read(String wanted, String found) {}

    @Test
    void eachRequestGetsItsOwnAnswer() throws Exception {
        Server.container(database, "crowd", FOUR_PARTITIONS);
        try (CosmosAsyncClient asynchronous = Server.connectAsync()) {
            CosmosAsyncContainer items = asynchronous.getDatabase(database.getId()).getContainer("crowd");
            Flux.range(0, ITEMS)
                .flatMap(n -> items.createItem(item("i" + n, "p" + n % 7).put("text", "x".repeat(n * 13))), 20)
                .blockLast();
            long before = answered();
            List<Read> reads = Flux.range(0, READS).flatMap(n -> read(items, n % ITEMS), AT_ONCE).collectList().block();
            Map<Boolean, Long> right = reads.stream()
                .collect(Collectors.partitioningBy(read -> read.wanted().equals(read.found()), Collectors.counting()));
            assertEquals(Map.of(true, (long) READS, false, 0L), right, reads.stream()
                .filter(read -> !read.wanted().equals(read.found())).limit(5).toList().toString());
            long answered = answered() - before;
            assertTrue(answered >= READS && answered < READS + OTHERS, answered + " answers to " + READS + " reads");
        }
    }

    private static Mono<Read> read(CosmosAsyncContainer items, int n) {
        return items.readItem("i" + n, new PartitionKey("p" + n % 7), ObjectNode.class)
            .map(response -> new Read("i" + n, seen(response)))
            .onErrorResume(CosmosException.class, error -> Mono.just(
                new Read("i" + n, error.getStatusCode() + " " + error.getShortMessage())));
    }

    private static String seen(CosmosItemResponse<ObjectNode> response) {
        ObjectNode item = response.getItem();
        int n = Integer.parseInt(item.get("id").asText().substring(1));
        boolean isWhole = item.get("text").asText().length() == n * 13
            && response.getETag().equals(item.get("_etag").asText());
        return item.get("id").asText() + (isWhole ? "" : " in pieces");
    }

    /** Requests that the server has answered so far, and not refused. */
    private static long answered() throws Exception {
        return Server.page("metrics").lines()
            .filter(line -> line.startsWith("orrery_requests_total{") && line.contains("class=\"2xx\""))
            .mapToLong(line -> Long.parseLong(line.substring(line.lastIndexOf(' ') + 1)))
            .sum();
    }
}

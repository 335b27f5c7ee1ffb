package scenario;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static scenario.Server.FOUR_PARTITIONS;
import static scenario.Server.item;

import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.models.CosmosQueryRequestOptions;
import com.azure.cosmos.models.FeedResponse;
import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/** Ordered queries over several partitions that go on in a new query. The SDK writes their filters by itself. */
class ResumedOrdersTest extends Scenario {
    private static final int COUNT = 30;

    @Test
    void ordersAreResumedByNewQueries() {
        CosmosContainer items = Server.container(database, "orders", FOUR_PARTITIONS);
        for (int n = 0; n < COUNT; n++) {
            items.createItem(item("i" + n, "p" + n).put("n", n).put("half", n / 2));
        }
        for (int size : new int[] {1, 7}) {
            assertEquals(numbers(), resumed(items, "SELECT VALUE c.n FROM c ORDER BY c.n", size));
            assertEquals(numbers(), resumed(items, "SELECT VALUE c.n FROM c ORDER BY c.half", size).stream()
                .map(Integer::parseInt).sorted().map(n -> n.toString()).toList());
            assertEquals(List.of("29", "28", "27", "26", "25"),
                resumed(items, "SELECT TOP 5 VALUE c.n FROM c ORDER BY c.n DESC", size));
            assertEquals(List.of("3", "4", "5", "6", "7"),
                resumed(items, "SELECT VALUE c.n FROM c ORDER BY c.n OFFSET 3 LIMIT 5", size));
        }
    }

    private static List<String> numbers() {
        return IntStream.range(0, COUNT).mapToObj(Integer::toString).toList();
    }

    private static List<String> resumed(CosmosContainer items, String query, int size) {
        List<String> rows = new ArrayList<>();
        String continuation = null;
        for (int pages = 0; pages < 10 * COUNT; pages++) {
            FeedResponse<JsonNode> page = items
                .queryItems(query, new CosmosQueryRequestOptions(), JsonNode.class)
                .iterableByPage(continuation, size).iterator().next();
            page.getResults().forEach(row -> rows.add(row.toString()));
            continuation = page.getContinuationToken();
            if (continuation == null) {
                return rows;
            }
        }
        throw new AssertionError("pages without end: " + query + " " + rows);
    }
}

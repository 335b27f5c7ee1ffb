package scenario;

import com.azure.cosmos.CosmosClient;
import com.azure.cosmos.CosmosClientBuilder;
import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.CosmosEndToEndOperationLatencyPolicyConfigBuilder;
import com.azure.cosmos.CosmosException;
import com.azure.cosmos.DirectConnectionConfig;
import com.azure.cosmos.models.CosmosQueryRequestOptions;
import com.azure.cosmos.models.PartitionKey;
import com.azure.cosmos.models.SqlParameter;
import com.azure.cosmos.models.SqlQuerySpec;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.time.Duration;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import reactor.core.Exceptions;

/**
 * A client that keeps a model of its items while partitions split and merge and the server is killed: the same as
 * tests/sdk/elastic/worker.py. Arguments: its name, database, container, and `kills` or `calm`.
 */
final class Worker {
    private static final int KEYS = 12;
    private static final int IDS = 6;
    private static final Duration CALL_TIME_MAX = Duration.ofSeconds(30);
    private static final ObjectMapper MAPPER = new ObjectMapper();

    private record Place(String key, String id) {}

    private final String name;
    private final boolean kills;
    private final CosmosContainer items;
    private final Random chance;
    /** Versions of which one must be found; null stands for no item. */
    private final Map<Place, Set<Integer>> states = new HashMap<>();
    private final Map<Place, Integer> versions = new HashMap<>();
    private volatile boolean isStopped;
    private int operations;
    /** The longest time in which nothing succeeded. */
    private long longest;

    private Worker(String name, CosmosContainer items, boolean kills) {
        this.name = name;
        this.items = items;
        this.kills = kills;
        this.chance = new Random(name.hashCode());
    }

    public static void main(String[] arguments) throws Exception {
        boolean kills = arguments[3].equals("kills");
        CosmosClient client = builder(kills).key(Server.required("ORRERY_KEY")).buildClient();
        CosmosContainer items = client.getDatabase(arguments[1]).getContainer(arguments[2]);
        items.read();
        Worker worker = new Worker(arguments[0], items, kills);
        System.out.println("ready");
        Thread waiting = new Thread(worker::waitForInput);
        waiting.setDaemon(true);
        waiting.start();
        worker.work();
        worker.report();
        System.exit(0);
    }

    /**
     * Among kills an answer has ten seconds instead of five: what the SDK gives up it asks for again, beside what is on its way. And
     * each call has an end: a request that this SDK writes to a connection which has just been closed is lost without a word, and
     * its caller would wait for ever (COMPAT.md says how).
     */
    private static CosmosClientBuilder builder(boolean kills) {
        CosmosClientBuilder builder = Server.builder();
        if (!kills) {
            return builder;
        }
        if ("direct".equals(System.getenv("ORRERY_MODE"))) {
            builder.directMode(DirectConnectionConfig.getDefaultConfig().setNetworkRequestTimeout(Duration.ofSeconds(10)));
        }
        return builder.endToEndOperationLatencyPolicyConfig(
            new CosmosEndToEndOperationLatencyPolicyConfigBuilder(CALL_TIME_MAX).build());
    }

    private void waitForInput() {
        try {
            System.in.readAllBytes();
        } catch (java.io.IOException closed) {
            // That is what it waits for.
        }
        isStopped = true;
    }

    private void work() throws InterruptedException {
        long succeeded = System.nanoTime();
        while (!isStopped) {
            Place place = new Place(name + "-" + chance.nextInt(KEYS), "i" + chance.nextInt(IDS));
            int choice = chance.nextInt(7);
            try {
                act(choice, place);
                operations++;
                long now = System.nanoTime();
                longest = Math.max(longest, now - succeeded);
                succeeded = now;
            } catch (RuntimeException error) {
                failures(error).stream().filter(failure -> !isOutage(failure)).forEach(failure -> fail("action " + choice + ": " + failure));
                Thread.sleep(50);
            }
        }
    }

    private void act(int choice, Place place) {
        switch (choice) {
            case 0, 1, 2 -> put(place);
            case 3, 4 -> read(place);
            case 5 -> delete(place);
            default -> query();
        }
    }

    /** What an operation failed over: a query of which several ranges fail at once ends with all of that in one exception. */
    private static List<Throwable> failures(Throwable error) {
        Throwable inner = error;
        while (!(inner instanceof CosmosException) && !Exceptions.isMultiple(inner) && inner.getCause() != null) {
            inner = inner.getCause();
        }
        return Exceptions.unwrapMultipleExcludingTracebacks(inner);
    }

    /**
     * Only a killed server may be noticed, and only as one that is not there. Status 0 is what the SDK makes of a connection that was
     * cut before an answer came: it asks for query plans and addresses over HTTPS in both modes.
     */
    private boolean isOutage(Throwable error) {
        return kills && error instanceof CosmosException failed && List.of(0, 408, 410, 503).contains(failed.getStatusCode());
    }

    private void fail(String text) {
        System.out.println(MAPPER.createObjectNode().put("worker", name).put("wrong", text));
        System.out.flush();
        Runtime.getRuntime().halt(1);
    }

    private Set<Integer> allowed(Place place) {
        return states.computeIfAbsent(place, unknown -> just(null));
    }

    private static Set<Integer> just(Integer version) {
        Set<Integer> one = new HashSet<>();
        one.add(version);
        return one;
    }

    private void settle(Place place, Integer found, String how) {
        if (!allowed(place).contains(found)) {
            fail(how + " of " + place + " found " + found + ", and it must be one of " + allowed(place));
        }
        states.put(place, just(found));
    }

    private void put(Place place) {
        int version = versions.merge(place, 1, Integer::sum);
        allowed(place).add(version);
        ObjectNode item = Server.item(place.id(), place.key())
            .put("owner", name).put("n", version).put("text", "x".repeat(chance.nextInt(400)));
        items.upsertItem(item, new PartitionKey(place.key()), null);
        states.put(place, just(version));
    }

    private void delete(Place place) {
        boolean mayBeGone = allowed(place).contains(null) || kills;
        allowed(place).add(null);
        try {
            items.deleteItem(place.id(), new PartitionKey(place.key()), null);
        } catch (CosmosException error) {
            if (error.getStatusCode() != 404) {
                throw error;
            }
            if (!mayBeGone) {
                fail(place + " is not there to be deleted");
            }
        }
        states.put(place, just(null));
    }

    private void read(Place place) {
        Integer found = null;
        try {
            found = items.readItem(place.id(), new PartitionKey(place.key()), ObjectNode.class).getItem().get("n").asInt();
        } catch (CosmosException error) {
            if (error.getStatusCode() != 404) {
                throw error;
            }
        }
        settle(place, found, "a read");
    }

    private void query() {
        SqlQuerySpec query = new SqlQuerySpec(
            "SELECT c.pk, c.id, c.n FROM c WHERE c.owner = @me ORDER BY c.n", List.of(new SqlParameter("@me", name)));
        CosmosQueryRequestOptions options = new CosmosQueryRequestOptions();
        String key = chance.nextBoolean() ? name + "-" + chance.nextInt(KEYS) : null;
        if (key != null) {
            options.setPartitionKey(new PartitionKey(key));
        }
        Map<Place, Integer> found = new HashMap<>();
        int last = Integer.MIN_VALUE;
        for (ObjectNode row : items.queryItems(query, options, ObjectNode.class)) {
            int version = row.get("n").asInt();
            if (version < last) {
                fail("the rows of a query are not in order");
            }
            last = version;
            Place place = new Place(row.get("pk").asText(), row.get("id").asText());
            if (found.put(place, version) != null) {
                fail("a query returned " + place + " twice");
            }
        }
        for (Place place : List.copyOf(states.keySet())) {
            if (key == null || key.equals(place.key())) {
                settle(place, found.remove(place), "a query");
            }
        }
        if (!found.isEmpty()) {
            fail("a query found what was never written: " + found);
        }
    }

    private void report() {
        ObjectNode report = MAPPER.createObjectNode()
            .put("worker", name).put("ops", operations).put("longest_ms", longest / 1_000_000);
        ObjectNode model = report.putObject("items");
        states.forEach((place, allowed) -> {
            ArrayNode versions = model.putArray(place.key() + "|" + place.id());
            allowed.forEach(versions::add);
        });
        System.out.println(report);
    }
}

package scenario;

import com.azure.cosmos.CosmosClient;
import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.models.PartitionKey;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;

/** The program of this SDK for tests/sdk/requests, told what to do line by line. */
final class Requests {
    private Requests() {}

    public static void main(String[] arguments) throws IOException {
        try (CosmosClient client = Server.connect()) {
            String id = Server.unique();
            client.createDatabase(id);
            CosmosContainer items = Server.container(client.getDatabase(id), "items", Server.FOUR_PARTITIONS);
            items.createItem(Server.item("first", "a"), new PartitionKey("a"), null);
            items.readItem("first", new PartitionKey("a"), ObjectNode.class);
            System.out.println("ready");
            BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                for (int number = 0; number < 100; number++) {
                    if (line.equals("reads")) {
                        items.readItem("first", new PartitionKey("a"), ObjectNode.class);
                    } else {
                        String pk = "p" + number % 10;
                        items.createItem(Server.item("i" + number, pk), new PartitionKey(pk), null);
                    }
                }
                System.out.println("done");
            }
        }
    }
}

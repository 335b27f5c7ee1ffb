package scenario;

import com.azure.cosmos.CosmosClient;
import com.azure.cosmos.CosmosDatabase;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.TestInstance;

/** A client and a database of its own for each class of tests. */
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
abstract class Scenario {
    protected CosmosClient client;
    protected CosmosDatabase database;

    @BeforeAll
    void open() {
        client = Server.connect();
        String id = Server.unique();
        client.createDatabase(id);
        database = client.getDatabase(id);
    }

    @AfterAll
    void close() {
        database.delete();
        Server.refused(404, database::read);
        client.close();
    }
}

// A connection between a client of NATS and its server, which can be cut or silenced at a chosen text.
import net from 'node:net';

const BURST_MS = 100; // period whose unused bytes may be sent later

export class NatsLine {
    /** Accepts clients on a port of its own for the server at `port`. */
    static async open(port) {
        const line = new NatsLine();
        line.pairs = new Set();
        line.said = ''; // the part of the server's data that was passed on
        line.server = net.createServer((client) => line.#join(client, net.connect(port, '127.0.0.1')));
        await new Promise((resolve) => line.server.listen(0, '127.0.0.1', resolve));
        line.server.unref(); // a failed test does not close it
        line.url = `nats://127.0.0.1:${line.server.address().port}`;
        return line;
    }

    #join(client, server) {
        const pair = [client, server];
        this.pairs.add(pair);
        const end = () => { this.pairs.delete(pair); for (const socket of pair) socket.destroy(); };
        for (const socket of pair) socket.on('error', end).on('close', end).setNoDelay(true);
        client.on('data', (data) => server.write(data));
        let due = 0;
        server.on('data', (data) => {
            if (this.silent) return;
            if (this.cutAt?.test(data.toString('latin1'))) {
                this.cutAt = undefined;
                this.cuts = (this.cuts ?? 0) + 1;
                end();
                return;
            }
            this.said += data.toString('latin1');
            client.write(data);
            if (this.bytesPerSecond) {
                // Sends by the time that has passed, so that late timers do not reduce the rate.
                due = Math.max(due, performance.now() - BURST_MS) + 1000 * data.length / this.bytesPerSecond;
                server.pause();
                setTimeout(() => server.resume(), Math.max(due - performance.now(), 0));
            }
        });
    }

    /** When the server sends this text next, the text is not passed on and the connection is cut. */
    cutBefore(pattern) { this.cutAt = pattern; }

    /** Stops passing on the server's data. */
    fallSilent() { this.silent = true; }

    close() {
        this.server.close();
        for (const pair of this.pairs) for (const socket of pair) socket.destroy();
    }
}

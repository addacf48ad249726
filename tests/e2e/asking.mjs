// Asks a server for its info from one address and many ports, over and over until SIGTERM, as one who forges a player's address
// does. Says "asking" when every port has asked once.
//   node asking.mjs HOST PORT ADDRESS PORTS REQUESTS_A_SECOND
import dgram from 'node:dgram';

const TICK_MS = 20;
const GET_INFO = Buffer.concat([Buffer.alloc(10, 0xff), Buffer.from('gie3\x01')]);
const [host, port, address, ports, rate] = process.argv.slice(2);

const sockets = await Promise.all(Array.from({ length: Number(ports) }, () => new Promise((resolve) => {
    const socket = dgram.createSocket('udp4');
    socket.bind(0, address, () => resolve(socket));
})));
process.once('SIGTERM', () => process.exit(0));
const began = performance.now();
let sent = 0;
setInterval(() => {
    for (const due = (performance.now() - began) * Number(rate) / 1000; sent < due; sent += 1) {
        sockets[sent % sockets.length].send(GET_INFO, Number(port), host);
        if (sent === sockets.length) console.log('asking');
    }
}, TICK_MS);

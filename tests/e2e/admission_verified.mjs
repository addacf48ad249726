// Verifies the addresses of clients that never join, from 17 addresses with 64 ports each: each sends a CONNECT, returns the token in a
// KEEPALIVE, and starts again if there is no answer. Runs until SIGTERM.
//   node admission_verified.mjs HOST PORT ADDRESS...
import dgram from 'node:dgram';
import { MAGIC, TOKEN_UNKNOWN } from './raw_client.mjs';
import { KIND } from './chunks.mjs';

const PORTS = 64;
const ROUND_MS = 500;
const control = (kind, ...behind) => Buffer.concat([Buffer.from([0x10, 0, 0, kind]), ...behind]);
const CONNECT = control(KIND.connect, MAGIC, TOKEN_UNKNOWN);
const [host, port, ...addresses] = process.argv.slice(2);

process.once('SIGTERM', () => process.exit(0));
const sockets = await Promise.all(addresses.flatMap((address) => Array.from({ length: PORTS }, () => new Promise((resolve) => {
    const socket = dgram.createSocket('udp4');
    const one = { socket, token: null };
    socket.on('message', (datagram) => {
        if (datagram[3] === KIND.connectAccept) one.token = datagram.subarray(8, 12);
        if (one.token) socket.send(control(KIND.keepalive, one.token), Number(port), host);
    });
    socket.bind(0, address, () => resolve(one));
}))));
setInterval(() => {
    for (const { socket, token } of sockets) {
        if (token) socket.send(control(KIND.keepalive, token), Number(port), host);
        socket.send(CONNECT, Number(port), host);
    }
}, ROUND_MS);
console.log('verifying');

// Access to a bus that requires TLS, client certificates or credentials, live and from a capture.
//   node nats_access.mjs TWSCOPE
// Covers: proxy/bus/link.cpp
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Bot, endPeers } from './bot.mjs';
import { makeCertificates, makeCredentials } from './nats_identity.mjs';
import { startNats, withNats } from './nats_server.mjs';
import { Child, freePort, temporaryFolder, waitUntil } from './process.mjs';
import { startProxy, TWSCOPE } from './proxy.mjs';
import { startServer } from './server.mjs';

const WAIT_MS = 20000;
const CAPTURE = fileURLToPath(new URL('../data/golden/token-map-change.pcap', import.meta.url));

after(endPeers);
const folder = temporaryFolder();
const ours = makeCertificates(folder, 'ours');
const others = makeCertificates(folder, 'others');
const credentials = makeCredentials(folder);

const secured = (more = '') => `tls { cert_file: "${ours.server}", key_file: "${ours.serverKey}" ${more} }`;
const asksForClients = secured(`, ca_file: "${ours.authority}", verify: true`);
const identity = { certificate: ours.client, key: ours.clientKey };

/** Returns the flags for one file with these contents: credentials, then our certificate with its key, then an authority. */
function oneFile({ creds, certificate, key, authority }) {
    const parts = [creds, certificate, key, authority].filter((part) => part);
    const file = join(folder, `${parts.map((part) => basename(part)).join('+')}`);
    writeFileSync(file, parts.map((part) => readFileSync(part, 'utf8')).join(''));
    return ['--bus-file', file];
}

/** Rows that must be admitted: name, the server's configuration, our flags. */
const ADMITTED = [
    ['TLS', secured(), oneFile({ authority: ours.authority })],
    ['TLS and a certificate of our own', asksForClients, oneFile({ ...identity, authority: ours.authority })],
    ['credentials', credentials.config, oneFile({ creds: credentials.known })],
    ['TLS and credentials', `${secured()}\n${credentials.config}`, oneFile({ creds: credentials.known, authority: ours.authority })],
    ['all of it', `${asksForClients}\n${credentials.config}`, oneFile({ creds: credentials.known, ...identity, authority: ours.authority })],
    ['all of it, by the flags of earlier versions', `${asksForClients}\n${credentials.config}`,
        ['--nats-tls', '--nats-tls-ca', ours.authority, '--nats-tls-cert', ours.client, '--nats-tls-key', ours.clientKey,
            '--nats-creds', credentials.known]],
];

const REJECTED = [
    ['an authority that we do not know', secured(), oneFile({ authority: others.authority }), /certificate|SSL/],
    ['no certificate of our own', asksForClients, oneFile({ authority: ours.authority }), /require a client certificate/],
    ['one of others', asksForClients, oneFile({ certificate: others.client, key: others.clientKey, authority: ours.authority }),
        /require a client certificate/],
    ['no credentials', credentials.config, [], /[Aa]uthorization/],
    ['those of an account that the bus does not know', credentials.config, oneFile({ creds: credentials.unknown }), /[Aa]uthorization/],
    ['a bus without TLS', '', oneFile({ authority: ours.authority }), /[Ss]ecure|SSL|TLS/],
];

for (const [name, config, args] of ADMITTED) {
    test(`${name}: a capture is published, and so is a game`, withNats({ folder, config }, async (nats) => {
        const decoded = spawnSync(TWSCOPE, ['decode', CAPTURE, '--bus', nats.url, ...args], { encoding: 'utf8', timeout: 60000 });
        assert.equal(decoded.status, 0, decoded.stderr);
        const server = await startServer({ folder, port: await freePort(), map: 'ctf1' });
        const records = join(folder, `${nats.port}.jsonl`);
        const proxy = await startProxy({ server: server.port, records, args: ['--bus', nats.url, ...args] });
        await proxy.child.waitFor(/publishing to/, WAIT_MS);
        const bot = await new Bot(proxy.port, 'anna').join();
        await bot.leave();
        assert.equal(await proxy.drain(), 0, proxy.child.errors);
        await server.stop();
    }));
}

test('renewed certificates and credentials are read at the next connection', async () => {
    const config = `${asksForClients}\n${credentials.config}`;
    let nats = await startNats({ folder, config });
    const renewed = join(folder, 'renewed');
    mkdirSync(renewed);
    const [, file] = oneFile({ creds: credentials.known, ...identity, authority: ours.authority });
    const copy = join(renewed, basename(file));
    const renew = () => { copyFileSync(file, `${copy}.new`); renameSync(`${copy}.new`, copy); };
    renew();
    const args = ['--bus', nats.url, '--bus-file', copy];
    const server = await startServer({ folder, port: await freePort(), map: 'ctf1' });
    const proxy = await startProxy({ server: server.port, records: join(folder, 'renewed.jsonl'), args });
    await proxy.child.waitFor(/publishing to/, WAIT_MS);
    renew();
    await nats.kill();
    await proxy.child.waitFor(/trying again/, WAIT_MS);
    nats = await nats.again();
    const connected = () => proxy.child.errors.split(/publishing to/).length === 3;
    await waitUntil('the second connection', () => connected() || /EACCES|[Pp]ermission/.test(proxy.child.errors), WAIT_MS);
    assert.ok(connected(), proxy.child.errors);
    assert.equal(await proxy.drain(), 0, proxy.child.errors);
    await server.stop();
    await nats.stop();
});

for (const [name, config, args, complaint] of REJECTED) {
    test(`${name}: it says so, and tries again`, withNats({ folder, config }, async (nats) => {
        const child = new Child('twscope', TWSCOPE, ['decode', CAPTURE, '--bus', nats.url, ...args]);
        await waitUntil('the complaint', () => /trying again/.test(child.log) || !child.running, WAIT_MS);
        assert.match(child.log, /cannot publish records to nats:\/\/127\.0\.0\.1:\d+: .*; trying again/);
        assert.match(child.log, complaint);
        assert.doesNotMatch(child.log, /BEGIN|SEED/);
        await child.stop();
    }));
}

// Tricks on the wire: each is played on the real server through twscope, with a second client as a witness. What the witness
// saw and what the server's log says is what the records have to say; what the server drops has no effect.
//   node evasion.mjs TWSCOPE
// What servers refuse differs by version (protocol sheet, section 1.2); the server here is DDNet 16.4.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { Bot, endPeers, random } from './bot.mjs';
import { int, string } from './ints.mjs';
import { freePort, temporaryFolder, waitUntil } from './process.mjs';
import { startProxy } from './proxy.mjs';
import { chunk, compress, FLAG, GAME, INFO, KIND, MAGIC, message, RawClient, say, SEQUENCES, SYSTEM,
    TOKEN_UNKNOWN } from './raw_client.mjs';
import { MAPS, startServer } from './server.mjs';

const SEED = 20261121;
const AT_ONCE = 10;        // tricks; a real client beside them still sees each snapshot
const SNAPSHOTS_AFTER = 50; // two seconds of play after each trick
const WAIT_MS = 20000;
const SHARE_VERIFIED = 0.995;
const BURST = 60;           // datagrams at once that no socket's buffer loses
const WRONG_TOKEN = Buffer.from('12345678', 'hex');
const NOTHING = Buffer.alloc(0);
const HALF = SEQUENCES / 2;

const moved = (sequence, by) => (sequence + by + SEQUENCES) % SEQUENCES;

/** A 0.7 control packet: header token, kind, what is behind. */
const seven = (token, kind, behind = NOTHING) => Buffer.concat([Buffer.from([FLAG.seven, 0, 0]), token, Buffer.from([kind]), behind]);
const sevenToken = () => seven(TOKEN_UNKNOWN, 5, Buffer.concat([WRONG_TOKEN, Buffer.alloc(508)]));
const sevenConnect = () => seven(WRONG_TOKEN, 1, Buffer.concat([WRONG_TOKEN, Buffer.alloc(508)]));
const sevenConnless = () => Buffer.concat([Buffer.from([0x21]), WRONG_TOKEN, TOKEN_UNKNOWN, Buffer.from('\xff\xff\xff\xffgie3\x01', 'latin1')]);
const sixInfoRequest = () => Buffer.concat([Buffer.from('xe\0\0\0\0\xff\xff\xff\xffgie3\x01', 'latin1')]);

/** A chat under the next sequence in a packet that is built wrong, then the honest one under the same sequence. */
const forged = (build) => async ({ client, tell, other }) => {
    client.input();
    client.send(build(client, [chunk(say(tell('forged')), { sequence: client.nextSequence })], other));
    client.say(tell('real'));
};
/** Datagrams that change nothing, then an honest chat. */
const harmless = (...builds) => async ({ client, tell, other, sync }) => {
    client.input();
    for (const build of builds) client.send(build(client, other));
    await sync();
    client.say(tell('real'));
};

/**
 * name; play: what it sends; saw: what the witness must have seen of it; join: what it sends before it joins; connections: how
 * many the server saw (1); early, resendBit, goodbyes: how it joins, plays and leaves.
 */
const TRICKS = [
    // Packets that the receiver drops: DDNet's order is size, flags, token, control or chunks, ack window, vital order.
    { name: 'an ack ahead of all that was sent', saw: ['real'],
        play: forged((client, chunks) => client.packet(chunks, { ack: moved(client.ack, 300) })) },
    { name: 'an ack ahead by one', saw: ['real'],
        play: forged((client, chunks) => client.packet(chunks, { ack: moved(client.ack, HALF - 1) })) },
    { name: 'an ack older than the one before', saw: ['real'],
        play: forged((client, chunks) => client.packet(chunks, { ack: moved(client.ack, -1) })) },
    { name: 'an ack of half a window ago', saw: ['real'],
        play: forged((client, chunks) => client.packet(chunks, { ack: moved(client.ack, -HALF) })) },
    { name: 'a wrong token', saw: ['real'], play: forged((client, chunks) => client.packet(chunks, { token: WRONG_TOKEN })) },
    { name: 'no token', saw: ['real'], play: forged((client, chunks) => client.packet(chunks, { token: NOTHING })) },
    { name: 'the token of another connection', saw: ['real'],
        play: forged((client, chunks, other) => client.packet(chunks, { token: other.token })) },
    { name: 'the token in front of the chunks', saw: ['real'],
        play: forged((client, chunks) => client.packet([client.token, ...chunks], { token: NOTHING, count: chunks.length })) },
    { name: 'compressed, with the token behind instead of inside', saw: ['real'],
        play: forged((client, chunks) => client.compressed(chunks, { token: NOTHING, behind: client.token })) },
    { name: 'compressed, with a wrong token', saw: ['real'],
        play: forged((client, chunks) => client.compressed(chunks, { token: WRONG_TOKEN })) },
    { name: 'the compression flag on what is not compressed', saw: ['real'],
        play: forged((client, chunks) => client.packet(chunks, { flags: FLAG.compressed })) },
    { name: 'a keepalive with chunks behind it', saw: ['real'],
        play: forged((client, chunks) => client.control(KIND.keepalive, Buffer.concat([...chunks, client.token]), { count: 1 })) },
    { name: 'no chunks by number, one in fact', saw: ['real'], // 19.4 and newer refuse it, older ones read none
        play: forged((client, chunks) => client.packet(chunks, { count: 0 })) },
    { name: 'the connless flag on chunks', saw: ['real'],
        play: forged((client, chunks) => client.packet(chunks, { flags: FLAG.connless })) },
    { name: 'a message cut at the end of the packet', saw: ['real'],
        play: forged((client, [whole]) => client.packet([whole.subarray(0, -5)])) },
    { name: 'a chat with the system bit', saw: ['real'], // the server takes it: as a command of a console that is not open
        play: async ({ client, tell }) => {
            client.vital(message(GAME.say, true, int(0), string(tell('forged'))));
            client.say(tell('real'));
        } },
    // Packets that it takes, odd as they are.
    // Its first byte is read as the kind of the control packet too, which nobody knows. Refused since 19.4.
    { name: 'a control packet with chunks', saw: ['forged'],
        play: forged((client, chunks) => client.packet(chunks, { flags: FLAG.control })) },
    // Read as a control packet by 0.7's header, then as one of the connection it has. Refused since 19.4.
    { name: 'a 0.7 control packet with chunks and the token of the connection', saw: ['forged'],
        play: forged((client, chunks) => client.packet([WRONG_TOKEN, ...chunks], { flags: FLAG.seven, count: 1 })) },
    { name: 'a resend request with a chat', saw: ['forged'],
        play: forged((client, chunks) => client.packet(chunks, { flags: FLAG.resend })) },
    { name: 'more chunks by number than there are', saw: ['forged'],
        play: forged((client, chunks) => client.packet(chunks, { count: 9 })) },
    { name: 'fewer chunks by number than there are', saw: ['forged'],
        play: forged((client, chunks) => client.packet([...chunks, ...chunks], { count: 1 })) },
    { name: 'surplus bytes between chunks and token', saw: ['forged'],
        play: forged((client, chunks) => client.packet([...chunks, Buffer.from('surplus')], { count: 1 })) },
    { name: 'compressed, as honest clients do', saw: ['forged'], play: forged((client, chunks) => client.compressed(chunks)) },
    { name: 'the flag of a header token', saw: ['forged'], // ignored by DDNet before 19.4, refused since
        play: forged((client, chunks) => client.packet(chunks, { flags: FLAG.header })) },
    { name: 'a chat that is not vital', saw: ['real'], // a game message has to be
        play: async ({ client, tell }) => {
            client.send(client.packet([chunk(say(tell('forged')))]));
            client.say(tell('real'));
        } },
    // Vital order.
    { name: 'overlapping vitals', saw: ['one', 'two', 'three'],
        play: async ({ client, tell, sync }) => {
            const [first, second] = [client.nextSequence, moved(client.nextSequence, 1)];
            client.send(client.packet([chunk(say(tell('one')), { sequence: first }), chunk(say(tell('one again')), { sequence: first }),
                chunk(say(tell('two')), { sequence: second }), chunk(say(tell('one resent')), { sequence: first, resend: true })]));
            client.sequence = second;
            await sync();
            client.say(tell('three'));
        } },
    { name: 'a gap, what is behind it, then both', saw: ['one', 'two'],
        play: async ({ client, tell }) => {
            const [first, second] = [client.nextSequence, moved(client.nextSequence, 1)];
            client.send(client.packet([chunk(say(tell('early')), { sequence: second }), chunk(say(tell('one')), { sequence: first }),
                chunk(say(tell('two')), { sequence: second })]));
            client.sequence = second;
        } },
    { name: 'sequences all around the ring', saw: ['real'],
        play: async ({ client, tell }) => {
            for (const by of [-HALF, -HALF + 1, -100, -1, 0, 2, 3, 100, HALF - 2, HALF - 1, HALF]) {
                const sequence = moved(client.sequence, by);
                client.send(client.packet([chunk(say(tell(`by ${by}`)), { sequence, resend: by % 2 === 0 })]));
            }
            client.say(tell('real'));
        } },
    { name: 'the resend bit on every chunk', saw: ['one', 'two', 'three'], resendBit: true,
        play: async ({ client, tell }) => { for (const text of ['one', 'two', 'three']) client.say(tell(text)); } },
    { name: 'a chat that comes twice', saw: ['real'],
        play: async ({ client, tell }) => {
            client.say(tell('real'));
            const resent = client.packet([client.unacknowledged.at(-1).chunk]);
            for (let each = 0; each < 5; each += 1) client.send(resent);
        } },
    // Control packets.
    { name: 'CLOSE without a token', saw: ['real'], play: harmless((client) => client.control(KIND.close, NOTHING)) },
    { name: 'CLOSE with a reason and no token', saw: ['real'], play: harmless((client) => client.control(KIND.close, string('forged'))) },
    { name: 'CLOSE with a wrong token', saw: ['real'],
        play: harmless((client) => client.control(KIND.close, Buffer.concat([string('forged'), WRONG_TOKEN]))) },
    { name: 'CLOSE with the token of another connection', saw: ['real'],
        play: harmless((client, other) => client.control(KIND.close, other.token)) },
    { name: 'CLOSE with the token before the reason', saw: ['real'],
        play: harmless((client) => client.control(KIND.close, Buffer.concat([client.token, string('forged')]))) },
    { name: 'CLOSE with an ack outside of the window', saw: ['real'],
        play: harmless((client) => client.control(KIND.close, client.token, { ack: moved(client.ack, 300) }),
            (client) => client.control(KIND.close, client.token, { ack: moved(client.ack, -1) })) },
    { name: 'compressed control packets', saw: ['real'], // refused since 10.3
        play: harmless(...[KIND.close, KIND.accept, KIND.connect].map((kind) => (client) => Buffer.concat([
            client.control(kind, NOTHING, { flags: FLAG.compressed }).subarray(0, 3),
            compress(Buffer.concat([Buffer.from([kind]), client.token]))]))) },
    { name: 'ACCEPT without a token, with a wrong one, with that of another', saw: ['real'],
        play: harmless((client) => client.control(KIND.accept, NOTHING), (client) => client.control(KIND.accept, WRONG_TOKEN),
            (client, other) => client.control(KIND.accept, other.token), (client) => client.control(KIND.accept, TOKEN_UNKNOWN),
            (client) => client.control(KIND.accept, Buffer.concat([client.token, NOTHING, Buffer.from([0])]))) },
    { name: 'CONNECT again and again', saw: ['real'],
        play: async ({ client, tell, sync }) => {
            for (let each = 0; each < 5; each += 1) client.connect();
            await waitUntil('CONNECTACCEPT', () => client.kinds.filter((kind) => kind === KIND.connectAccept).length >= 6, WAIT_MS);
            await sync();
            client.say(tell('real'));
        } },
    { name: 'CONNECT without the token extension, then a first chunk without a token', saw: ['real'],
        play: async ({ client, tell, sync }) => {
            client.send(client.control(KIND.connect, NOTHING, { ack: 0 }));
            client.send(client.packet([chunk(say(tell('forged')), { sequence: 1 })], { ack: 0, token: NOTHING }));
            await sync();
            client.say(tell('real'));
        } },
    { name: 'CONNECT, its answer, and a wrong ACCEPT', saw: ['real'],
        play: async ({ client, tell, sync }) => {
            client.connect();
            await waitUntil('CONNECTACCEPT', () => client.kinds.filter((kind) => kind === KIND.connectAccept).length >= 2, WAIT_MS);
            client.send(client.control(KIND.accept, WRONG_TOKEN));
            await sync();
            client.say(tell('real'));
        } },
    { name: 'CONNECTACCEPT from the client', saw: ['real'],
        play: harmless((client) => client.control(KIND.connectAccept, Buffer.concat([MAGIC, WRONG_TOKEN])),
            (client) => client.control(KIND.accept, WRONG_TOKEN)) },
    { name: 'CONNECT of 0.6.5', saw: ['real'],
        play: harmless((client) => client.control(KIND.connect, Buffer.concat([Buffer.alloc(4), WRONG_TOKEN, Buffer.alloc(504)]), { ack: 0 }),
            (client) => Buffer.concat([Buffer.from([FLAG.header, 0, 0]), WRONG_TOKEN])) },
    { name: 'control packets nobody knows', saw: ['real'],
        play: harmless(...[5, 6, 100, 255].map((kind) => (client) => client.control(kind))) },
    { name: 'a flood of control packets', saw: ['one', 'two', 'three', 'four'],
        play: async ({ client, tell, sync, below }) => {
            for (const text of ['one', 'two', 'three', 'four']) {
                for (let each = 0; each < BURST; each += 1) {
                    const kind = [KIND.keepalive, KIND.connectAccept, 6 + below(200)][below(3)];
                    client.send(client.control(kind, [client.token, NOTHING, WRONG_TOKEN][below(3)]));
                }
                client.say(tell(text));
                await sync();
            }
        } },
    // A handshake that both sides completed: a new connection, said by ACCEPT alone.
    { name: 'CONNECT, its answer and ACCEPT: a reconnect', saw: ['before', 'real'], connections: 2,
        play: async ({ client, tell, sync }) => {
            client.say(tell('before'));
            await sync();
            client.connect();
            await waitUntil('CONNECTACCEPT', () => client.kinds.filter((kind) => kind === KIND.connectAccept).length >= 2, WAIT_MS);
            await reconnect(client);
            client.say(tell('real'));
        } },
    { name: 'ACCEPT alone: a reconnect all the same', saw: ['before', 'real'], connections: 2,
        play: async ({ client, tell, sync }) => {
            client.say(tell('before'));
            await sync();
            await reconnect(client);
            client.say(tell('real'));
        } },
    { name: 'CLOSE three times', saw: ['real'], goodbyes: 3, play: async ({ client, tell }) => { client.say(tell('real')); } },
    // Messages that would make an observer forget.
    { name: 'ENTERGAME before it is time', saw: ['real'], early: true, play: async ({ client, tell }) => { client.say(tell('real')); } },
    { name: 'ENTERGAME again and again', saw: ['real'],
        play: async ({ client, tell, sync }) => {
            for (let each = 0; each < 5; each += 1) {
                client.vital(message(SYSTEM.enterGame, true));
                await sync();
            }
            client.say(tell('real'));
        } },
    { name: 'READY and a map change from the client', saw: ['real'],
        play: async ({ client, tell }) => {
            client.vital(message(SYSTEM.mapChange, true, string('forged'), int(1), int(1)));
            client.vital(message(SYSTEM.snapEmpty, true, int(1), int(2)));
            client.vital(message(SYSTEM.conReady, true));
            client.vital(message(GAME.chat, false, int(0), int(0), string('forged')));
            client.say(tell('real'));
        } },
    { name: 'acknowledged ticks far ahead, far behind and negative', saw: ['real'],
        play: async ({ client, tell, sync }) => {
            for (const tick of [0x6fffffff, 1, 0, -1, -2147483648, client.tick + 2, 2147483647]) {
                client.input(tick);
                await sync();
            }
            client.say(tell('real'));
        } },
    // 0.7 on the same pair of addresses, without a handshake that completes.
    { name: 'a 0.7 TOKEN first of all', saw: ['real'], join: [sevenToken], play: async ({ client, tell }) => { client.say(tell('real')); } },
    { name: 'a cut 0.7 TOKEN first of all', saw: ['real'], join: [() => Buffer.from([4, 0, 0])],
        play: async ({ client, tell }) => { client.say(tell('real')); } },
    { name: 'a 0.7 info request first of all', saw: ['real'], join: [sevenToken, sevenConnless],
        play: async ({ client, tell }) => { client.say(tell('real')); } },
    { name: 'a 0.6 info request and garbage first of all', saw: ['real'], join: [sixInfoRequest, () => Buffer.from([8, 0, 0, 1, 2])],
        play: async ({ client, tell }) => { client.say(tell('real')); } },
    { name: '0.7 TOKEN and CONNECT in the middle', saw: ['real'], play: harmless(sevenToken, sevenConnect, sevenToken, sevenToken) },
    { name: '0.7 connless in the middle', saw: ['real'], play: harmless(sevenConnless, sixInfoRequest, sevenConnless) },
    { name: 'a 0.7 CLOSE in the middle', saw: ['real'],
        play: harmless(() => seven(WRONG_TOKEN, 4), (client) => seven(client.token, 4), () => seven(TOKEN_UNKNOWN, 4)) },
    // Noise.
    { name: 'the shortest datagrams', saw: ['real'],
        play: harmless(...[[], [0], [16], [16, 0], [16, 0, 0], [0, 0, 0], [0, 0, 255], [64, 0, 0], [128, 0, 0], [255, 255, 255]]
            .map((bytes) => () => Buffer.from(bytes))) },
    { name: 'random garbage', saw: ['one', 'two', 'three', 'four', 'five'],
        play: async ({ client, tell, sync, below }) => {
            for (const text of ['one', 'two', 'three', 'four', 'five']) {
                for (let each = 0; each < BURST; each += 1) {
                    client.send(Buffer.from(Array.from({ length: 1 + below(80) }, () => below(256))));
                }
                client.say(tell(text));
                await sync();
            }
        } },
];

/** The server takes ACCEPT with the right token as a new connection, and sends the map again. */
async function reconnect(client) {
    const maps = client.mapChanges + 1;
    client.send(client.control(KIND.accept, client.token, { ack: 0 }));
    client.rejoin();
    client.vital(INFO);
    await client.inGame(maps, WAIT_MS);
}

after(endPeers);
after(() => { for (const client of RawClient.all) client.vanish(); });

/** Everything that was seen of one trick. */
async function play(trick, index, { proxy, other, seen }) {
    const name = `t${`${index}`.padStart(2, '0')}`;
    const client = new RawClient(proxy.port, name, trick);
    const next = random(SEED + index);
    const below = (limit) => Math.floor(next() * limit);
    const tell = (text) => `${name} ${text}`;
    let syncs = 0;
    /** Waits until the witness has seen an honest chat, and so the server all that was sent before it. */
    const sync = async () => {
        const text = tell(`sync ${syncs += 1}`);
        client.say(text);
        await waitUntil(`the witness to see "${text}"`, () => seen.includes(text), WAIT_MS);
    };
    for (const build of trick.join ?? []) client.send(build(client));
    await client.join();
    client.resendBit = trick.resendBit ?? false;
    await trick.play({ client, tell, other, sync, below });
    await sync();
    const before = client.ticks.size;
    await waitUntil(`${name} to play on`, () => client.ticks.size >= before + SNAPSHOTS_AFTER, WAIT_MS);
    const result = { name, ticks: client.ticks.size, port: client.socket.address().port, close: client.close,
        mapChanges: client.mapChanges };
    await client.leave(trick.goodbyes);
    return result;
}

/** Plays all tricks, some at once, and returns what became of each: a result or an error. */
async function playAll(game) {
    const results = [];
    const left = TRICKS.map((trick, index) => ({ trick, index }));
    const worker = async () => {
        for (let each = left.shift(); each; each = left.shift()) {
            const { trick, index } = each;
            results[index] = await play(trick, index, game).catch((error) => ({ error }));
        }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, worker));
    return results;
}

/** Behind the twscope under test is a line of a quarter of a second: five snapshots are under way when a client says goodbye. */
async function quitOverSlowLine() {
    const far = await startProxy({ server: server.port, records: join(folder, 'far.jsonl'), args: ['--impair', 'delay=120ms'] });
    const near = await startProxy({ server: far.port, records: join(folder, 'slow.jsonl'), args: ['--maps', MAPS, '--items', 'none'] });
    const client = await new RawClient(near.port, 'slow').join();
    await waitUntil('the client to play', () => client.ticks.size > SNAPSHOTS_AFTER, WAIT_MS);
    await client.comeBack();
    await waitUntil('the client to play again', () => client.ticksOf(2) > SNAPSHOTS_AFTER, WAIT_MS);
    await client.leave();
    await waitUntil('the server to see it leave', () => server.child.log.match(/'slow' has left the game/g)?.length === 2, WAIT_MS);
    const statuses = [await near.drain(), await far.drain()];
    const all = near.records();
    return { ticks: client.ticks.size, statuses, rebuilt: all.filter(({ type, ok }) => type === 'snapshot' && ok).length,
        events: all.filter(({ type }) => type === 'session').map(({ event }) => event),
        odd: all.filter(({ type, severity, id }) => type === 'finding' && severity !== 'info' && id !== 'snapshot.missing_descriptor') };
}

const folder = temporaryFolder();
// With 0.7 switched on, and so with all that a server of today understands.
const server = await startServer({ folder, port: await freePort(), map: 'ctf5', settings: ['sv_sixup 1', 'sv_chat_penalty 0'] });
const proxy = await startProxy({ server: server.port, records: join(folder, 'live.jsonl'), args: ['--maps', MAPS, '--items', 'none'] });
const witness = new Bot(proxy.port, 'witness', { keep: true, options: { timeout: 60000 } });
const seen = [];
witness.client.on('message', ({ message: text }) => seen.push(text));
await witness.join();
const other = await new RawClient(proxy.port, 'other').join();
const results = await playAll({ proxy, other, seen });
// Snapshots of the old map are on their way to both while the new one is announced.
await server.command('change_map dm1');
await other.inGame(2, WAIT_MS);
const seenBefore = witness.snapshots.length;
await waitUntil('the witness to play on the new map', () => witness.snapshots.length > seenBefore + SNAPSHOTS_AFTER, WAIT_MS);
const [witnessPort, otherPort] = [witness.port, other.socket.address().port];
await other.leave();
await witness.leave();
const slowLine = await quitOverSlowLine();
const departed = () => (server.child.log.match(/has left the game/g) ?? []).length;
await waitUntil('all to have left', () => departed() >= results.filter(({ error }) => !error).length + 4, WAIT_MS);
const status = await proxy.drain();
await server.stop();
const records = proxy.records();

const sessionOf = (port) => records.find((record) =>
    record.type === 'session' && record.event === 'open' && record.client.endsWith(`:${port}`))?.session;
const of = (session, type) => records.filter((record) => record.session === session && record.type === type);
const verified = (session) => of(session, 'snapshot').filter(({ ok }) => ok).length;

/** How often a client entered, by the server's log: chat names its id, and the last to enter with that id is its address. */
function timesEntered(name) {
    const { log } = server.child;
    const chat = new RegExp(`chat: (\\d+):-?\\d+:${name}: `).exec(log);
    const entered = [...log.matchAll(/player has entered the game\. ClientID=(\d+) addr=<\{(\S+)\}>/g)];
    const address = entered.filter((line) => line[1] === chat[1] && line.index < chat.index).at(-1)[2];
    return entered.filter((line) => line[2] === address).length;
}

for (const [index, trick] of TRICKS.entries()) {
    test(`${trick.name}: the records say what the server took`, () => {
        const result = results[index];
        if (result.error) throw result.error;
        const { name, ticks, port, close, mapChanges } = result;
        assert.equal(close, null, 'the server closed nothing');
        const session = sessionOf(port);
        const witnessed = seen.filter((text) => text.startsWith(`${name} `));
        const honest = (text) => !text.startsWith(`${name} sync`);
        assert.deepEqual(witnessed.filter(honest), trick.saw.map((text) => `${name} ${text}`), 'what the server took');
        const recorded = of(session, 'message').filter((record) => record.dir === 'c2s' && record.name === 'cl_say')
            .map(({ fields }) => fields.message);
        assert.deepEqual(recorded, witnessed, 'chats in the records');
        const connections = trick.connections ?? 1;
        // A server that is asked to begin anew sends the map again, and leaves the client in the game.
        assert.equal(mapChanges, connections, 'connections that the server saw');
        assert.equal(timesEntered(name), 1);
        const events = of(session, 'session').map(({ event }) => event);
        assert.deepEqual(events, ['open', ...Array(connections).fill(['established', 'close']).flat()], 'connections in the records');
        const protocols = of(session, 'session').filter(({ event }) => event === 'established').map(({ protocol }) => protocol);
        assert.deepEqual(new Set(protocols), new Set(['0.6+ddnet']));
        const rebuilt = verified(session);
        assert.ok(rebuilt >= ticks * SHARE_VERIFIED, `${rebuilt} snapshots verified, the client got ${ticks}`);
    });
}

test('nothing of it touched the witness', () => {
    const session = sessionOf(witnessPort);
    assert.deepEqual(of(session, 'session').map(({ event }) => event), ['open', 'established', 'close']);
    // The server forgets to describe a type in the very snapshot in which it first uses it.
    const odd = of(session, 'finding').filter(({ severity, id }) => severity !== 'info' && id !== 'snapshot.missing_descriptor');
    assert.deepEqual(odd.slice(0, 5), []);
    const got = witness.snapshots.filter(({ failed }) => !failed).length;
    assert.ok(got > 100, `${got} snapshots`);
    const rebuilt = verified(session);
    assert.ok(rebuilt >= got * SHARE_VERIFIED, `${rebuilt} snapshots verified, the witness got ${got}`);
});

test('nothing of it touched a client whose token was taken', () => {
    const session = sessionOf(otherPort);
    assert.deepEqual(of(session, 'session').map(({ event }) => event), ['open', 'established', 'close']);
    assert.equal(of(session, 'map').length, 2);
    const rebuilt = verified(session);
    assert.ok(rebuilt >= other.ticks.size * SHARE_VERIFIED, `${rebuilt} snapshots verified, the client got ${other.ticks.size}`);
});

test('an honest quit over a slow line, and coming back: what was in flight is no finding', () => {
    const { events, odd, rebuilt, ticks, statuses } = slowLine;
    assert.deepEqual(statuses, [0, 0]);
    assert.deepEqual(events, ['open', 'established', 'close', 'established', 'close']);
    assert.deepEqual(odd, []);
    assert.ok(rebuilt >= ticks * SHARE_VERIFIED, `${rebuilt} snapshots verified, the client got ${ticks}`);
});

test('twscope drains and exits 0', () => assert.equal(status, 0, proxy.child.log));

// The tricks of the evasion suite: each row is a trick, and what a witness must see of it. The server is DDNet 16.4. Servers differ in what
// they reject; the rows say where.
import { int, string } from './ints.mjs';
import { waitUntil } from './process.mjs';
import { chunk, compress, FLAG, GAME, KIND, SEQUENCES, SYSTEM } from './chunks.mjs';
import { INFO, MAGIC, message, say, TOKEN_UNKNOWN } from './raw_client.mjs';

const WAIT_MS = 20000;
const BURST = 60;           // number of datagrams at once that every socket's buffer can hold
const WRONG_TOKEN = Buffer.from('12345678', 'hex');
const NOTHING = Buffer.alloc(0);
const HALF = SEQUENCES / 2;

const moved = (sequence, by) => (sequence + by + SEQUENCES) % SEQUENCES;

/** Returns a 0.7 control packet: header token, kind, payload. */
const seven = (token, kind, behind = NOTHING) =>
    Buffer.concat([Buffer.from([FLAG.seven, 0, 0]), token, Buffer.from([kind]), behind]);
const sevenToken = () => seven(TOKEN_UNKNOWN, 5, Buffer.concat([WRONG_TOKEN, Buffer.alloc(508)]));
const sevenConnect = () => seven(WRONG_TOKEN, 1, Buffer.concat([WRONG_TOKEN, Buffer.alloc(508)]));
const getInfo = Buffer.from('\xff\xff\xff\xffgie3\x01', 'latin1');
const sevenConnless = () => Buffer.concat([Buffer.from([0x21]), WRONG_TOKEN, TOKEN_UNKNOWN, getInfo]);
const sixInfoRequest = () => Buffer.concat([Buffer.from('xe\0\0\0\0', 'latin1'), getInfo]);

/** Sends a chat message with the next sequence in an invalid packet, then the honest one with the same sequence. */
const forged = (build) => async ({ client, tell, other }) => {
    client.input();
    client.send(build(client, [chunk(say(tell('forged')), { sequence: client.nextSequence })], other));
    client.say(tell('real'));
};
/** Sends datagrams without effect, then an honest chat message. */
const harmless = (...builds) => async ({ client, tell, other, sync }) => {
    client.input();
    for (const build of builds) client.send(build(client, other));
    await sync();
    client.say(tell('real'));
};

/** Waits until the server has answered this number of CONNECTs. */
const accepts = (client, count) => waitUntil(`${count} CONNECTACCEPTs`,
    () => client.kinds.filter((kind) => kind === KIND.connectAccept).length >= count, WAIT_MS);
/** Plays honestly, apart from the settings in the row. */
const honest = async ({ client, tell }) => { client.say(tell('real')); };

/**
 * name; play: what the client sends; saw: what the witness must have seen; join: what the client sends before it joins; connections: the
 * number of connections that the server saw (1); early, resendBit, goodbyes: how the client joins, plays and leaves.
 */
export const TRICKS = [
    // Packets that the receiver drops. DDNet checks in this order: size, flags, token, control or chunks, ack window, vital order.
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
    { name: 'no chunks by number, one in fact', saw: ['real'], // 19.4 and newer reject the packet, older versions read no chunk
        play: forged((client, chunks) => client.packet(chunks, { count: 0 })) },
    { name: 'the connless flag on chunks', saw: ['real'],
        play: forged((client, chunks) => client.packet(chunks, { flags: FLAG.connless })) },
    { name: 'a message cut at the end of the packet', saw: ['real'],
        play: forged((client, [whole]) => client.packet([whole.subarray(0, -5)])) },
    { name: 'a chat with the system bit', saw: ['real'], // the server accepts it as a command for a console that is not open
        play: async ({ client, tell }) => {
            client.vital(message(GAME.say, true, int(0), string(tell('forged'))));
            client.say(tell('real'));
        } },
    // Unusual packets that the receiver accepts.
    // Servers reject the first four since 19.4, so twscope must know the server's version.
    { name: 'a control packet with chunks', saw: ['forged'],
        play: forged((client, chunks) => client.packet(chunks, { flags: FLAG.control })) },
    // The server reads these packets as control packets by their 0.7 header, then as packets of their connection.
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
    { name: 'the flag of a header token', saw: ['forged'],
        play: forged((client, chunks) => client.packet(chunks, { flags: FLAG.header })) },
    { name: 'the flag of a header token, compressed', saw: ['forged'],
        play: forged((client, chunks) => client.compressed(chunks, { flags: FLAG.header })) },
    { name: 'a 0.6.5 header token, then chunks', saw: ['real'],
        play: forged((client, chunks) => client.packet([WRONG_TOKEN, ...chunks], { flags: FLAG.header, count: 1 })) },
    { name: 'a control packet with chunks and a wrong token', saw: ['real'],
        play: forged((client, chunks) => client.packet(chunks, { flags: FLAG.control, token: WRONG_TOKEN })) },
    { name: 'a control packet with chunks and an ack ahead', saw: ['real'],
        play: forged((client, chunks) => client.packet(chunks, { flags: FLAG.control, ack: moved(client.ack, 300) })) },
    { name: 'a control packet with chunks, compressed', saw: ['real'],
        play: forged((client, chunks) => client.compressed(chunks, { flags: FLAG.control })) },
    { name: 'a 0.7 control packet with chunks and its token in the header alone', saw: ['real'],
        play: forged((client, chunks) => client.packet([client.token, ...chunks], { flags: FLAG.seven, token: NOTHING, count: 1 })) },
    { name: 'a 0.7 control packet that asks for a resend, with chunks', saw: ['forged'],
        play: forged((client, chunks) =>
            client.packet([WRONG_TOKEN, ...chunks], { flags: FLAG.seven | FLAG.header, count: 1 })) },
    { name: 'a control packet with a chat of which the first byte is no kind', saw: ['one', 'two'],
        play: async ({ client, tell, sync }) => {
            client.input();
            client.send(client.packet([chunk(say(tell('one')), { sequence: client.nextSequence })], { flags: FLAG.control | FLAG.resend }));
            client.sequence = client.nextSequence;
            await sync();
            client.say(tell('two'));
        } },
    { name: 'a chat that is not vital', saw: ['real'], // game messages must be vital
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
    { name: 'compressed control packets', saw: ['real'], // rejected since 10.3
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
            await accepts(client, 6);
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
            await accepts(client, 2);
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
    // A complete handshake that starts a new connection with an ACCEPT alone.
    { name: 'CONNECT, its answer and ACCEPT: a reconnect', saw: ['before', 'real'], connections: 2,
        play: async ({ client, tell, sync }) => {
            client.say(tell('before'));
            await sync();
            client.connect();
            await accepts(client, 2);
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
    { name: 'CLOSE three times', saw: ['real'], goodbyes: 3, play: honest },
    // Messages that would make a naive observer forget its state.
    { name: 'ENTERGAME before it is time', saw: ['real'], early: true, play: honest },
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
    // 0.7 between the same two addresses, without a complete handshake.
    { name: 'a 0.7 TOKEN first of all', saw: ['real'], join: [sevenToken], play: honest },
    { name: 'a cut 0.7 TOKEN first of all', saw: ['real'], join: [() => Buffer.from([4, 0, 0])],
        play: honest },
    { name: 'a 0.7 info request first of all', saw: ['real'], join: [sevenToken, sevenConnless],
        play: honest },
    { name: 'a 0.6 info request and garbage first of all', saw: ['real'], join: [sixInfoRequest, () => Buffer.from([8, 0, 0, 1, 2])],
        play: honest },
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

/** The server takes an ACCEPT with the right token for a new connection, and sends the map again. */
async function reconnect(client) {
    const maps = client.mapChanges + 1;
    client.send(client.control(KIND.accept, client.token, { ack: 0 }));
    client.rejoin();
    client.vital(INFO);
    await client.inGame(maps, WAIT_MS);
}

// A headless client (npm library `teeworlds`) that walks about, and stores each snapshot as the library decoded it.
import dgram from 'node:dgram';
import { createRequire } from 'node:module';
import { CLIENT_LIBRARY, need } from './need.mjs';
import { endChildren, waitUntil } from './process.mjs';

need(CLIENT_LIBRARY);
const require = createRequire(import.meta.url);
const { Client } = require('teeworlds');
const { Snapshot } = require('teeworlds/lib/snapshot.js');

const OFFLINE = 0;
const STEP_MS = 100;
const JOIN_MS = 15000;
const PLAY_MS = 30000;

/** Returns a generator that gives the same numbers for the same seed. */
export function random(seed) {
    let state = seed >>> 0;
    return () => {
        state = (state + 0x6d2b79f5) >>> 0;
        let t = Math.imul(state ^ (state >>> 15), state | 1);
        t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
        return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
    };
}

// The library keeps the items of each tick in `eSnapHolder`; its event has less (nothing for an empty delta).
const watchers = new WeakMap();
const unpackSnapshot = Snapshot.prototype.unpackSnapshot;
Snapshot.prototype.unpackSnapshot = function (body, deltaTick, tick, crc) {
    const errorsBefore = this.crc_errors;
    const held = this.eSnapHolder;
    const result = unpackSnapshot.call(this, body, deltaTick, tick, crc);
    // The library forgets all other snapshots when a full one arrives. Real clients keep them, because later deltas may use them.
    if (deltaTick === -1) this.eSnapHolder = held.filter(({ ack }) => ack < tick).concat(this.eSnapHolder);
    watchers.get(this.client)?.({
        tick,
        deltaTick,
        failed: this.crc_errors > errorsBefore || result.recvTick !== tick,
        items: this.eSnapHolder.filter((held) => held.ack === tick).map(({ Snapshot: { Key, Data } }) =>
            // Snapshot ints wrap at 32 bits, but the library's do not.
            ({ type_id: (Key >>> 16) & 0xffff, id: Key & 0xffff, data: Data.map((value) => value | 0) })),
    });
    return result;
};

export class Bot {
    static all = new Set();

    /**
     * @param keep store every snapshot in `snapshots`
     * @param host address of the server
     * @param address local address to play from, if this host has several
     */
    constructor(port, name, { seed = 1, keep = false, host = '127.0.0.1', address, options = {} } = {}) {
        Bot.all.add(this);
        this.name = name;
        this.snapshots = [];
        this.online = false;
        this.left = null;
        this.random = random(seed);
        this.client = new Client(host, port, name, { timeout: 10000, ...options });
        if (address) this.#playFrom(address);
        if (keep) watchers.set(this.client, (snapshot) => this.snapshots.push(snapshot));
        this.gone = new Promise((resolve) => {
            this.client.on('disconnect', (reason, fromServer) => {
                this.stopWalking();
                this.online = false;
                this.left ??= { reason, fromServer };
                resolve(this.left);
            });
        });
        this.client.on('connected', () => { this.online = true; });
    }

    #playFrom(address) {
        this.client.socket.close(); // the library's own socket is bound to all addresses
        this.client.socket = dgram.createSocket('udp4');
        this.client.socket.bind(0, address);
    }

    /** Continues from another port, as after a NAT has dropped its mapping. */
    changePort() {
        const before = this.client.socket;
        this.client.socket = dgram.createSocket('udp4');
        this.client.socket.bind();
        for (const listener of before.listeners('message')) this.client.socket.on('message', listener);
        before.removeAllListeners('message');
        before.close();
    }

    /** The UDP port from which the bot plays. */
    get port() { return this.client.socket.address().port; }

    async join(ms = JOIN_MS) {
        this.online = false;
        await this.client.connect();
        await waitUntil(`${this.name} to be in the game`, () => this.online || this.left, ms);
        if (this.left) throw new Error(`${this.name} did not get in: ${this.left.reason}`);
        return this;
    }

    walk() {
        this.walking = setInterval(() => this.#step(), STEP_MS);
        return this;
    }

    stopWalking() { clearInterval(this.walking); }

    #step() {
        const { movement } = this.client;
        const chance = (probability) => this.random() < probability;
        if (chance(0.1)) [() => movement.RunLeft(), () => movement.RunRight(), () => movement.RunStop()][Math.floor(this.random() * 3)]();
        movement.Jump(chance(0.2));
        if (chance(0.1)) movement.Hook(chance(0.5));
        if (chance(0.3)) movement.SetAim(Math.round(this.random() * 400 - 200), Math.round(this.random() * 400 - 200));
        if (chance(0.2)) movement.Fire();
        if (chance(0.05)) movement.WantedWeapon(1 + Math.floor(this.random() * 5));
    }

    say(text) { this.client.game.Say(text); }

    async leave() {
        this.stopWalking();
        // After the server has closed, the library rejects a promise that nobody can catch.
        if (this.client.State !== OFFLINE) await this.client.Disconnect();
        this.vanish();
    }

    /** Leaves without telling the server. */
    vanish() {
        this.stopWalking();
        this.client.clearAllIntervals();
        this.client.socket?.close();
        this.client.socket = undefined;
    }

    /** Closes the connection but keeps its port, so that it can reconnect from there. */
    async stepOut() {
        this.stopWalking();
        await this.client._Disconnect(false);
    }
}

/** The number of snapshots that a server sends in about one second of play. */
export const SNAPSHOTS = 25;

/** Waits until the bot has received `count` more snapshots. */
export async function plays(bot, count = SNAPSHOTS) {
    const before = bot.snapshots.length;
    const state = () => JSON.stringify({ before, got: bot.snapshots.length, last: bot.snapshots.at(-1)?.tick, left: bot.left, client: bot.client?.State });
    await waitUntil(() => `${bot.name} to get ${count} more snapshots (${state()})`, () => bot.snapshots.length >= before + count, PLAY_MS);
}

/** Ends the children and bots that a failed test left running. */
export function endPeers() {
    endChildren();
    for (const bot of Bot.all) bot.vanish();
}

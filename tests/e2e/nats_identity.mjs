// Identities for a bus: certificates made by openssl, and an operator, accounts and users as nsc makes them.
import { spawnSync } from 'node:child_process';
import { createPrivateKey, generateKeyPairSync, sign } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { need } from './need.mjs';

const OPENSSL = '/usr/bin/openssl';
const BASE32 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';
const PREFIX = { operator: 14 << 3, account: 0, user: 20 << 3, seed: 18 << 3 };

need(OPENSSL);

function openssl(...args) {
    const made = spawnSync(OPENSSL, args, { encoding: 'utf8' });
    if (made.status !== 0) throw new Error(`openssl ${args.join(' ')}: ${made.stderr}`);
}

/** Creates an authority, and certificates that it signed for 127.0.0.1 and for a client; returns the files' names. */
export function makeCertificates(folder, name) {
    const file = (what) => join(folder, `${name}-${what}.pem`);
    const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
    openssl('req', '-x509', ...key, '-keyout', file('ca-key'), '-out', file('ca'), '-subj', `/CN=${name}`, '-days', '1');
    for (const who of ['server', 'client']) {
        const request = file(`${who}-request`);
        const extensions = join(folder, `${name}-${who}.ext`);
        writeFileSync(extensions, 'subjectAltName = IP:127.0.0.1\n');
        openssl('req', ...key, '-keyout', file(`${who}-key`), '-out', request, '-subj', `/CN=${who}`);
        openssl('x509', '-req', '-in', request, '-CA', file('ca'), '-CAkey', file('ca-key'), '-CAcreateserial', '-days', '1',
            '-extfile', extensions, '-out', file(who));
    }
    return { authority: file('ca'), server: file('server'), serverKey: file('server-key'), client: file('client'),
        clientKey: file('client-key') };
}

function base32(bytes) {
    let bits = 0;
    let value = 0;
    let text = '';
    for (const byte of bytes) {
        value = ((value << 8) | byte) & 0xffff;
        for (bits += 8; bits >= 5; bits -= 5) text += BASE32[(value >> (bits - 5)) & 31];
    }
    return bits > 0 ? text + BASE32[(value << (5 - bits)) & 31] : text;
}

function crc16(bytes) {
    let crc = 0;
    for (const byte of bytes) {
        crc ^= byte << 8;
        for (let bit = 0; bit < 8; bit += 1) crc = (crc & 0x8000) ? ((crc << 1) ^ 0x1021) & 0xffff : (crc << 1) & 0xffff;
    }
    return crc;
}

function nkey(...parts) {
    const bytes = Buffer.concat(parts);
    const crc = crc16(bytes);
    return base32(Buffer.concat([bytes, Buffer.from([crc & 0xff, crc >> 8])]));
}

/** An operator, account or user, with a key of this kind. */
class Identity {
    constructor(kind) {
        const { privateKey } = generateKeyPairSync('ed25519');
        const { d, x } = privateKey.export({ format: 'jwk' });
        this.kind = kind;
        this.private = createPrivateKey(privateKey.export({ format: 'pem', type: 'pkcs8' }));
        this.id = nkey(Buffer.from([PREFIX[kind]]), Buffer.from(x, 'base64url'));
        const prefix = PREFIX[kind];
        this.seed = nkey(Buffer.from([PREFIX.seed | (prefix >> 5), (prefix & 31) << 3]), Buffer.from(d, 'base64url'));
    }

    /** Returns claims about another identity, signed by this one. */
    vouch(subject, claims = {}) {
        const part = (value) => Buffer.from(JSON.stringify(value)).toString('base64url');
        const text = `${part({ typ: 'JWT', alg: 'ed25519-nkey' })}.${part({ jti: subject.id, iat: Math.floor(Date.now() / 1000),
            iss: this.id, name: subject.kind, sub: subject.id, nats: { ...claims, type: subject.kind, version: 2 } })}`;
        return `${text}.${sign(null, Buffer.from(text), this.private).toString('base64url')}`;
    }
}

const UNLIMITED = { subs: -1, data: -1, payload: -1, imports: -1, exports: -1, wildcards: true, conn: -1, leaf: -1 };
const STREAMS = { mem_storage: -1, disk_storage: -1, streams: -1, consumer: -1 };

/** Returns the configuration of a server that requires credentials, with those of a permitted user and of one without permissions. */
export function makeCredentials(folder) {
    const operator = new Identity('operator');
    const [system, account, stranger] = [new Identity('account'), new Identity('account'), new Identity('account')];
    const write = (name, owner) => {
        const user = new Identity('user');
        const file = join(folder, `${name}.creds`);
        writeFileSync(file, `-----BEGIN NATS USER JWT-----\n${owner.vouch(user, { subs: -1, data: -1, payload: -1 })}\n`
            + `------END NATS USER JWT------\n\n-----BEGIN USER NKEY SEED-----\n${user.seed}\n------END USER NKEY SEED------\n`);
        return file;
    };
    const config = [
        `operator: ${operator.vouch(operator, { system_account: system.id })}`,
        `system_account: ${system.id}`,
        'resolver: MEMORY',
        'resolver_preload: {',
        `  ${system.id}: ${operator.vouch(system, { limits: UNLIMITED })}`,
        `  ${account.id}: ${operator.vouch(account, { limits: { ...UNLIMITED, ...STREAMS } })}`,
        '}'].join('\n');
    return { config, known: write('known', account), unknown: write('unknown', stranger) };
}

// Replaces DuckDB's shell: runs the statements on standard input, and prints the rows of each.
//   node duckdb.mjs [DATABASE] < STATEMENTS
import { readFileSync } from 'node:fs';
import { DuckDBInstance } from '@duckdb/node-api';

const instance = await DuckDBInstance.create(process.argv[2]);
const connection = await instance.connect();
const statements = await connection.extractStatements(readFileSync(0, 'utf8'));
for (let index = 0; index < statements.count; index++) {
    const statement = await statements.prepare(index);
    const rows = await statement.runAndReadAll();
    console.log(rows.columnNames().join('|'));
    for (const row of rows.getRows()) console.log(row.join('|'));
}

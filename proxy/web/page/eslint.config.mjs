import tseslint from 'typescript-eslint';

export default tseslint.config(
    { ignores: ['node_modules/**'] },
    ...tseslint.configs.strict,
    {
        files: ['src/**/*.ts'],
        rules: {
            // What a peer can choose must never be read as markup.
            'no-restricted-properties': ['error',
                { property: 'innerHTML', message: 'use textContent' },
                { property: 'outerHTML', message: 'use textContent' },
                { property: 'insertAdjacentHTML', message: 'use textContent' }],
            'no-restricted-globals': ['error', 'eval'],
            'max-lines': ['error', 400],
            'max-lines-per-function': ['error', { max: 80, skipBlankLines: true }],
            '@typescript-eslint/no-non-null-assertion': 'error',
        },
    },
);

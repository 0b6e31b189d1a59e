// SPDX-License-Identifier: Apache-2.0
//
// The few texts of the element's own, by the card's language. Everything else that is read comes with the card.
//
// To add a text: a row. To add a language: a column, and its number in `wordsOf`.

const WORDS = {
  copy: ['Copy', '复制'],
  copied: ['Copied', '已复制'],
  failed: ['Copy failed', '复制失败'],
  refused: ['Not allowed', '不允许'],
  more: ['Show all', '展开'],
  code: ['Code', '代码'],
  cut: ['… {n} more characters are not shown', '… 还有 {n} 个字符未显示'],
} as const;

export const wordsOf = (language: 0 | 1) => (word: keyof typeof WORDS, n = 0): string => WORDS[word][language].replace('{n}', String(n));

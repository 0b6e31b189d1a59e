// SPDX-License-Identifier: Apache-2.0
// Around the turns: loading, the past, the way back to the end.
export default {
  'log.label': ['对话', 'Conversation'],
  'log.loading': ['正在加载对话…', 'Loading the conversation…'],
  'log.failed': ['对话无法加载：{text}', 'The conversation cannot be loaded: {text}'],
  'log.gone': ['它已被删除', 'it was deleted'],
  'log.beginning': ['对话从这里开始', 'The conversation begins here'],
  'log.loadingOlder': ['正在加载更早的内容…', 'Loading what came before…'],
  'log.failedOlder': ['更早的内容没有加载成功', 'What came before could not be loaded'],
  'log.jump': ['回到最新', 'Jump to latest'],
  'log.jumpNew': ['回到最新（{n} 条新内容）', 'Jump to latest ({n})'],
} as const;

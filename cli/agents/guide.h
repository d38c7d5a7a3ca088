/*
 * guide.h - what an agent without MCP should know of snap, as a section for AGENTS.md.
 */
#pragma once

extern const char agents_guide[];

/*
 * guide.h - a section for AGENTS.md that tells an agent without MCP how to use snap.
 */
#pragma once

extern const char agents_guide[];

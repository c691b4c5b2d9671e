"""The token models of the k-hop experiment in PyTorch, for the peers on the CPU and on the GPU.

99 tokens, vocabulary 16, width 60, three split heads, MLP 240 with GELU (tanh), added residuals, no
LayerNorm, causal; cross-entropy at every token, gradients clipped at norm 1, AdamW.
standard: learned positions are added to the tokens; positional: queries and keys come from them.
"""

import math

import torch
from torch import nn
from torch.nn import functional

TOKENS, VOCABULARY, WIDTH, HEADS, MLP_WIDTH, BATCH = 99, 16, 60, 3, 240, 64
HEAD_SIZE = WIDTH // HEADS
LEARNING_RATE, BETAS, WEIGHT_DECAY, MOST_NORM = 5e-4, (0.9, 0.95), 0.1, 1.0


class Layer(nn.Module):
    def __init__(self, positional, fused_attention):
        super().__init__()
        self.positional, self.fused_attention = positional, fused_attention
        self.query_key = nn.Linear(WIDTH, 2 * WIDTH)
        self.value = nn.Linear(WIDTH, WIDTH)
        self.output = nn.Linear(WIDTH, WIDTH)
        self.first = nn.Linear(WIDTH, MLP_WIDTH)
        self.second = nn.Linear(MLP_WIDTH, WIDTH)

    def mixed(self, x, positions, hidden):
        """softmax(Q K^T / sqrt(d_k)) V; one matrix per head for all samples where it is positional."""
        samples = x.shape[0]
        source = positions.unsqueeze(0) if self.positional else x
        query, key = self.query_key(source).view(-1, TOKENS, 2, HEADS, HEAD_SIZE).permute(2, 0, 3, 1, 4)
        value = self.value(x).view(samples, TOKENS, HEADS, HEAD_SIZE).transpose(1, 2)
        if self.fused_attention:
            whole = (samples, -1, -1, -1)
            mixed = functional.scaled_dot_product_attention(
                query.expand(whole), key.expand(whole), value, is_causal=True
            )
        else:
            scores = query @ key.transpose(-1, -2) / math.sqrt(HEAD_SIZE)
            mixed = torch.softmax(scores + hidden, -1) @ value
        return mixed.transpose(1, 2).reshape(samples, TOKENS, WIDTH)

    def forward(self, x, positions, hidden):
        x = x + self.output(self.mixed(x, positions, hidden))
        return x + self.second(functional.gelu(self.first(x), approximate="tanh"))


class TokenModel(nn.Module):
    """forward gives the loss. `fused_attention`: PyTorch's own function for it (2.0 and newer)."""

    def __init__(self, architecture, depth, fused_attention=False):
        super().__init__()
        self.positional = architecture == "positional"
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        self.positions = nn.Parameter(0.02 * torch.randn(TOKENS, WIDTH))
        self.layers = nn.ModuleList(Layer(self.positional, fused_attention) for _ in range(depth))
        self.head = nn.Linear(WIDTH, VOCABULARY)
        ahead = torch.ones(TOKENS, TOKENS, dtype=torch.bool).triu(1)
        self.register_buffer("hidden", torch.zeros(TOKENS, TOKENS).masked_fill(ahead, -1e30))

    def logits(self, tokens):
        x = self.tokens(tokens)
        if not self.positional:
            x = x + self.positions
        for layer in self.layers:
            x = layer(x, self.positions, self.hidden)
        return self.head(x)

    def forward(self, tokens, labels):
        return functional.cross_entropy(self.logits(tokens).flatten(0, 1), labels.flatten())


def token_batch(batch=BATCH, device="cpu"):
    """Random tokens and labels: a step takes as long whatever they say."""
    return tuple(torch.randint(0, VOCABULARY, (batch, TOKENS), device=device) for _ in range(2))


def adamw(network, **options):
    return torch.optim.AdamW(
        network.parameters(), lr=LEARNING_RATE, betas=BETAS, weight_decay=WEIGHT_DECAY, **options
    )

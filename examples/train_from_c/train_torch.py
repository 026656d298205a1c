# The twin of main.c and net.ric in PyTorch.
import sys

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(1, 32)
        self.out = nn.Linear(32, 1)

    def forward(self, x):
        return self.out(torch.tanh(self.hidden(x)))


def main():
    torch.manual_seed(0)
    x = torch.arange(64)[:, None] / 32 - 1
    y = torch.sin(3 * x)
    net = Net()
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    for step in range(1000):
        optimizer.zero_grad()
        prediction = net(x)
        loss = ((prediction - y) ** 2).mean()
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            print(f"step {step:4}  loss {loss.item():.6f}")
    with torch.no_grad():
        prediction = net(x)
    print(f"sin({3 * x[48].item():.3f}) = {prediction[48].item():.3f}")
    return 0 if loss < 1e-3 else 1


if __name__ == "__main__":
    sys.exit(main())
